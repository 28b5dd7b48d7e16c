import { Effect } from "effect"
import { makeAbortedOutcome, withoutDelivery } from "./abortedOutcome.ts"
import { abortRefusal } from "./abortRefusal.ts"
import type { EngineClient } from "./EngineClient.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { holdEngine } from "./holdEngine.ts"
import { makeIncompleteOutcome } from "./incompleteOutcome.ts"
import { makeAttempt } from "./makeAttempt.ts"
import { failed, type Outcome, refused } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { clientClosed } from "./refusals.ts"
import type { LargeBodyLanes } from "./vocabulary/LargeBodies.ts"
import type { Work } from "./Work.ts"

/** Sends a request to engines until one has answered, or no further attempt is allowed. */
export const makeAskEngine = (config: GatewaySettings, engine: EngineClient["Service"], largeBodies: LargeBodyLanes) => {
  const incompleteOutcome = makeIncompleteOutcome(engine)
  const abortedOutcome = makeAbortedOutcome(incompleteOutcome)
  const attempt = makeAttempt({ config, engine, largeBodies, incompleteOutcome, abortedOutcome })

  /**
   * Sends the request to the first engine. If that did no work and the caller is still connected, sends it to one other
   * engine.
   */
  const askAll = Effect.fnUntraced(function* (work: Work, signal: RequestAbort): Effect.fn.Return<Outcome> {
    const { requestAbort, routedRequest } = work.admitted
    for (;;) {
      const answer = yield* attempt(work, signal)
      if (!("retry" in answer)) return answer.error === clientClosed || requestAbort.reason !== "gone" ? answer : withoutDelivery(answer, work)
      if (requestAbort.reason === "gone") return withoutDelivery(answer.retry === "cut" ? refused(clientClosed) : answer.outcome, work)
      if (answer.retry !== "cut" && !routedRequest.retry(answer.retry)) return answer.outcome
    }
  })

  const ask = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
    const { admitted, progress, stream } = work
    const { checked, requestAbort } = admitted
    // Aborted before any engine got the request.
    if (requestAbort.aborted) return failed(abortRefusal(requestAbort), "No engine got the request.", progress)
    // A stream may stop as soon as it reported usage. An answer that is not streamed reports none before its end, so
    // its engine stops at once.
    const hold = holdEngine(requestAbort, checked.stream ? config.abandonedMillis : 0, () => {
      stream?.close()
      // The engine has the request, and no other engine gets it.
      if (!progress.hasUsage || checked.prompts > 1) work.sample ??= samplePrompt(checked)
      admitted.releaseBody()
    })
    return yield* Effect.ensuring(askAll(work, hold.signal), Effect.sync(hold.release))
  })

  return { ask, abortedOutcome }
}
