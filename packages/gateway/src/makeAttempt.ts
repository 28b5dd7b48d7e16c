import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
import type { EngineCall, EngineClient } from "./EngineClient.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import type { IncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, type Outcome } from "./Outcome.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { makeReadAnswer } from "./readAnswer.ts"
import { readWhole } from "./readWhole.ts"
import { engineFailed, engineTimeout } from "./refusals.ts"
import { makeRelayedOutcome } from "./relayedOutcome.ts"
import { makeRelayStream } from "./relayStream.ts"
import type { LargeBodyLanes } from "./vocabulary/LargeBodies.ts"
import type { Work } from "./Work.ts"

const callOf = (config: GatewaySettings, work: Work, signal: RequestAbort): EngineCall => {
  const { checked, id, routedRequest, startedAt } = work.admitted
  return {
    url: routedRequest.url,
    path: checked.endpoint,
    method: "POST",
    body: () => checked.engineBody,
    requestId: id,
    traceparent: work.observation.traceparent,
    timeout: (checked.stream ? config.firstFrameMillis : config.answerMillis) - (performance.now() - startedAt),
    onSent: () => {
      work.sentAt = performance.now()
    },
    signal
  }
}

export interface AttemptOptions {
  readonly config: GatewaySettings
  readonly engine: EngineClient["Service"]
  readonly largeBodies: LargeBodyLanes
  readonly incompleteOutcome: IncompleteOutcome
  readonly abortedOutcome: ReturnType<typeof makeAbortedOutcome>
}

/** One attempt to get an answer from one engine. `retry` is set in its result if another attempt is allowed. */
export const makeAttempt = (options: AttemptOptions) => {
  const { abortedOutcome, config, engine, incompleteOutcome, largeBodies } = options
  const relayStream = makeRelayStream(config, largeBodies, makeRelayedOutcome(incompleteOutcome, abortedOutcome))
  const readAnswer = makeReadAnswer(options)

  /** The engine sent no response head in time. An engine that does not stream sends it when its answer is complete. */
  const lateOutcome = (work: Work): Effect.Effect<Outcome> => {
    const { checked, requestAbort, routedRequest } = work.admitted
    if (requestAbort.aborted) return abortedOutcome(work)
    return checked.stream
      ? Effect.succeed(failed(engineTimeout, "The engine did not answer in time.", work.progress))
      : incompleteOutcome(work, engineTimeout, "The answer exceeded its time limit", routedRequest.workedUntil)
  }

  /** Opens an answer of the engine. Fails if the engine sends no response head. */
  const open = (work: Work, signal: RequestAbort) => engine.call(callOf(config, work, signal))

  /** The engine sent no response head. */
  const unansweredOutcome = Effect.fnUntraced(function* (work: Work, { reason }: Effect.Error<ReturnType<typeof open>>) {
    if (reason === "late") return yield* lateOutcome(work)
    const what = reason === "broken" ? "The engine gave no answer." : "No engine could be reached."
    return { retry: reason === "stale" ? "stale" : "lost", outcome: failed(engineFailed, what, work.progress) } as const
  })

  /** The engine answered with an error. */
  const refusedOutcome = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, status: number, signal: RequestAbort) {
    const body = yield* readWhole(upstream, 64 * 1024, 10_000, signal)
    return signal.aborted ? yield* abortedOutcome(work) : handleEngineError(typeof body === "string" ? "" : body.toString("utf8"), status, work)
  })

  return Effect.fnUntraced(function* (work: Work, signal: RequestAbort) {
    const { admitted, pendingInsert, stream } = work
    work.sentAt = null
    const opened = yield* Effect.result(open(work, signal))
    // No byte of a stream may be sent before the row is committed; the engine works in parallel. An answer that is not
    // streamed is recorded by the same row at its end.
    if (stream !== null && pendingInsert.exit === null) yield* pendingInsert.ended
    if (signal.aborted) return yield* abortedOutcome(work)
    if (opened._tag === "Failure") return yield* unansweredOutcome(work, opened.failure)
    const upstream = opened.success
    admitted.routedRequest.pulse.at = performance.now()
    const status = upstream.statusCode ?? 500
    if (status !== 200) return yield* refusedOutcome(work, upstream, status, signal)
    return yield* stream === null ? readAnswer(work, upstream, signal) : relayStream(work, upstream, stream, signal)
  })
}
