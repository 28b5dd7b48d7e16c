import { nameInEngine, weightCommits } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { answerItems, itemsFor, readAgreement, readRepository, withoutThinking } from "@seatrial/trial"
import { Effect } from "effect"
import type { MergedAnswers } from "../gather/MergedAnswers.ts"
import { mergeContainer } from "../resources/objectNames.ts"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Longest that all items may take: as long as a row of the check suite that takes as many answers, for the slowest of engines. */
const limit = "10 minutes"

/** Asks base and adapter merged every item, and keeps the answers for the checks of the adapter, which come next in the same place. */
export const askMerged = Effect.fn("askMerged")(function* (trial: EngineUnderTrial, answers: MergedAnswers) {
  const kube = yield* KubeClient
  const { engine, namespace, pod, revision, run } = trial
  const { facts, settings } = revision
  const log = yield* Effect.mapError(kube.podLog(pod.name, namespace, { container: mergeContainer, tailLines: 50 }), () =>
    unavailable({ message: "What the merge said could not be read." })
  )
  const agreement = readAgreement(log)
  if (agreement === null) return yield* new WorkUnavailable({ message: "The merge did not say how its weights compare." })
  const subject = yield* subjectOf(trial, "60 seconds")
  // It is served like every whole model.
  const name = nameInEngine(engine.runtime, run.model)
  const whole = { ...subject, servedName: name, listedName: name }
  // Asked as the adapter will be.
  const [{ commit, files }] = weightCommits(facts)
  const quiet = withoutThinking({ repository: readRepository({ facts, files, commit, texts: new Map() }) })
  const answered = yield* answerItems(whole, itemsFor(facts.parameters), quiet).pipe(
    Effect.mapError((error) => unavailable({ message: error._tag === "Unexpected" ? `The merged model's engine: ${error.detail}.` : error.message })),
    Effect.timeoutOrElse({
      duration: limit,
      orElse: () => Effect.fail(new WorkUnavailable({ message: `The merged model did not answer all items within ${limit}.` }))
    })
  )
  const quantizes = settings.engine_flags?.quantization
  answers.set(run.id, {
    answers: answered,
    merged: agreement,
    baseQuantized: facts.config.quantization !== "none" || (quantizes !== undefined && quantizes !== null),
    everyModule: facts.adapter !== undefined && engine.adapters?.issue(facts.adapter, facts.config) === null
  })
})
