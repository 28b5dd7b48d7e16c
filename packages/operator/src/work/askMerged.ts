import { nameInEngine, quantizesAtStart } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { answerItems, itemsFor, readAgreement, scoreTexts, type Unexpected, withoutThinking } from "@seatrial/trial"
import { Effect } from "effect"
import type { MergedAnswers } from "../gather/MergedAnswers.ts"
import { mergeContainer } from "../resources/objectNames.ts"
import { type EngineUnderTrial, unavailable } from "./EngineUnderTrial.ts"
import { withSuiteSubject } from "./suiteSubject.ts"
import { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

/** The time limit for all items. A check with as many answers has the same limit, for the slowest engine. */
const limit = "10 minutes"

/** The engine answered valid requests with HTTP 5xx on two attempts. The merged weights or the engine cause it. */
const reproducedError = (detail: string) =>
  new WorkRefused({
    failure: {
      code: "output_garbage",
      text: `The merged model's engine: ${detail}, reproduced on two attempts. The adapter, its base or their support in this engine is broken; try another adapter or runtime.`
    }
  })

/**
 * The error for an unexpected answer of the merged model's engine. `wasEngineError`: whether the previous attempt ended
 * with an HTTP 5xx.
 */
export const mergedFault = ({ detail, status = 0 }: Pick<Unexpected, "detail" | "status">, wasEngineError = false): WorkRefused | WorkUnavailable => {
  const isEngineError = status >= 500
  return isEngineError && wasEngineError ? reproducedError(detail) : new WorkUnavailable({ message: `The merged model's engine: ${detail}.`, isEngineError })
}

/**
 * Sends every item to the merged model, and keeps the answers for the checks of the adapter, which run next in the same
 * place.
 */
export const askMerged = Effect.fn("askMerged")(function* (trial: EngineUnderTrial, answers: MergedAnswers, wasEngineError?: boolean) {
  const kube = yield* KubeClient
  const { engine, namespace, pod, revision, run } = trial
  const { facts, settings } = revision
  const log = yield* Effect.mapError(kube.podLog(pod.name, namespace, { container: mergeContainer, tailLines: 50 }), () =>
    unavailable({ message: "The log of the merge could not be read." })
  )
  const agreement = readAgreement(log)
  if (agreement === null) return yield* new WorkUnavailable({ message: "The log of the merge contains no comparison of its weights." })
  // The merged model is served like a full model, and gets the same requests as the adapter.
  const name = nameInEngine(engine.wire, run.model)
  const answered = yield* withSuiteSubject(trial, "60 seconds", (subject) => {
    const mergedSubject = { ...subject, servedName: name, listedName: name, salt: `merged-${pod.uid}` }
    return Effect.all({ answers: answerItems(mergedSubject, itemsFor(facts.parameters), withoutThinking(mergedSubject)), scores: scoreTexts(mergedSubject) })
  }).pipe(
    Effect.mapError((error) => (error._tag === "Unexpected" ? mergedFault(error, wasEngineError) : unavailable(error))),
    Effect.timeoutOrElse({
      duration: limit,
      orElse: () => Effect.fail(new WorkUnavailable({ message: `The merged model did not answer all items within ${limit}.` }))
    })
  )
  answers.set(run.id, {
    ...answered,
    merged: agreement,
    baseQuantized: facts.config.quantization !== "none" || quantizesAtStart(settings),
    everyModule: facts.adapter !== undefined && engine.adapters?.issue(facts.adapter, facts.config) === null
  })
})
