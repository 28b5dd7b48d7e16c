import { Effect } from "effect"
import { makeAbortedOutcome, withoutDelivery } from "./abortedOutcome.ts"
import { abortRefusal } from "./abortRefusal.ts"
import type { EngineClient } from "./EngineClient.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import { holdEngine } from "./holdEngine.ts"
import { makeIncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, type Outcome, refused } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { makeReadAnswer } from "./readAnswer.ts"
import { readWhole } from "./readWhole.ts"
import { clientClosed, engineFailed, engineTimeout } from "./refusals.ts"
import { makeRelayStream } from "./relayStream.ts"
import type { Work } from "./Work.ts"

/** Sends a request to engines until one has answered, or no further attempt is allowed. */
export const makeAskEngine = (config: GatewaySettings, engine: EngineClient["Service"]) => {
  const incompleteOutcome = makeIncompleteOutcome(engine)
  const abortedOutcome = makeAbortedOutcome(incompleteOutcome)

  const relayStream = makeRelayStream(config, incompleteOutcome, abortedOutcome)
  const readAnswer = makeReadAnswer(config, incompleteOutcome, abortedOutcome)

  /** The engine sent no response head in time. An engine that does not stream sends it when its answer is complete. */
  const lateOutcome = (work: Work): Effect.Effect<Outcome> => {
    const { checked, requestAbort, routedRequest } = work.admitted
    if (requestAbort.aborted) return abortedOutcome(work)
    return checked.stream
      ? Effect.succeed(failed(engineTimeout, "The engine did not answer in time.", work.progress))
      : incompleteOutcome(work, engineTimeout, "The time for the answer ended", routedRequest.workedUntil)
  }

  /** One attempt with one engine. `retry` is set if another attempt is allowed. */
  const attempt = Effect.fnUntraced(function* (work: Work, signal: RequestAbort) {
    const { admitted, pendingInsert, progress, stream } = work
    const { checked, id, routedRequest } = admitted
    work.sentAt = null
    const timeout = (checked.stream ? config.firstFrameMillis : config.answerMillis) - (performance.now() - admitted.startedAt)
    const opened = yield* Effect.result(
      engine.call({
        url: routedRequest.url,
        path: checked.endpoint,
        method: "POST",
        body: () => checked.engineBody,
        requestId: id,
        traceparent: work.observation.traceparent,
        timeout,
        onSent: () => {
          work.sentAt = performance.now()
        },
        signal
      })
    )
    // No byte of a stream may be sent before the row is committed; the engine works in parallel. An answer that is not
    // streamed is recorded by the same row at its end.
    if (stream !== null && pendingInsert.exit === null) yield* pendingInsert.ended
    if (signal.aborted) return yield* abortedOutcome(work)
    if (opened._tag === "Failure") {
      const { reason } = opened.failure
      if (reason === "late") return yield* lateOutcome(work)
      const what = reason === "broken" ? "The engine gave no answer." : "No engine could be reached."
      return { retry: reason === "stale" ? "stale" : "lost", outcome: failed(engineFailed, what, progress) } as const
    }
    const upstream = opened.success
    routedRequest.pulse.at = performance.now()
    const status = upstream.statusCode ?? 500
    if (status === 200) return yield* stream === null ? readAnswer(work, upstream, signal) : relayStream(work, upstream, stream, signal)
    const body = yield* readWhole(upstream, 64 * 1024, 10_000, signal)
    return signal.aborted ? yield* abortedOutcome(work) : handleEngineError(typeof body === "string" ? "" : body.toString("utf8"), status, work)
  })

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
