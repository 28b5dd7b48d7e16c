import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import type { IncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, noUsage, type Outcome } from "./Outcome.ts"
import { type AnswerFormat, type ParsedAnswer, parseAnswer } from "./parseAnswer.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { readWhole, type UnreadAnswer } from "./readWhole.ts"
import { engineFailed, engineTimeout, type Refusal, unavailable } from "./refusals.ts"
import { type LargeBodyLanes, largeBody } from "./vocabulary/LargeBodies.ts"
import type { LargeBodyUnread } from "./vocabulary/LargeBodyLane.ts"
import type { Retry, Work } from "./Work.ts"

/** Largest answer that is not streamed, in bytes. */
const maxAnswer = 16 * 1024 * 1024

const formatOf = ({ admitted: { checked, routedRequest } }: Work): AnswerFormat => {
  const { adapted, runtime } = routedRequest.route
  return { endpoint: checked.endpoint, model: checked.model, adapted, runtime }
}

/**
 * The outcome of an answer that was read completely at `readAt`, which is `performance.now()`. It may have been parsed
 * later.
 */
const outcomeOf = (work: Work, parsed: ParsedAnswer, readAt: number): Outcome | Retry => {
  if (parsed._tag === "Error") return handleEngineError(parsed.error, 200, work)
  const { admitted, progress } = work
  const { checked, routedRequest } = admitted
  const { finished, finishReason, usage } = parsed.answer
  // An engine that ends answers what it has. The caller has no part of it, so another engine may get the request.
  if (!finished) return { retry: "lost", outcome: { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage } }
  routedRequest.answered()
  if (usage !== null && work.sentAt !== null) routedRequest.observePace(usage.output_tokens / checked.choices, readAt - work.sentAt)
  return {
    state: "completed",
    status: 200,
    usage: usage ?? noUsage,
    finishReason,
    error: null,
    note: usage === null ? "The engine reported no usage." : null,
    body: parsed.body
  }
}

interface ReadAnswerOptions {
  readonly config: GatewaySettings
  readonly largeBodies: LargeBodyLanes
  readonly incompleteOutcome: IncompleteOutcome
  readonly abortedOutcome: ReturnType<typeof makeAbortedOutcome>
}

/** Reads an answer that is not streamed and determines its outcome. */
export const makeReadAnswer = ({ abortedOutcome, config, incompleteOutcome, largeBodies }: ReadAnswerOptions) => {
  /** The outcome of an answer that could not be read to its end. */
  const unreadOutcome = Effect.fnUntraced(function* (work: Work, fault: UnreadAnswer, full: Refusal) {
    const { requestAbort, routedRequest } = work.admitted
    if (fault === "late" && requestAbort.aborted) return yield* abortedOutcome(work)
    if (fault === "late") return yield* incompleteOutcome(work, engineTimeout, "The answer exceeded its time limit", routedRequest.workedUntil)
    // The caller decides how large an answer becomes, for example with log probabilities. The engine did not fail.
    if (fault === "large") return yield* incompleteOutcome(work, engineFailed, "The answer exceeded 16 MiB")
    if (fault === "full") return yield* incompleteOutcome(work, full, "The gateway had no memory for the answer")
    return { retry: "lost", outcome: failed(engineFailed, "The engine's answer broke off.", work.progress) } as const
  })

  /** The outcome of a large answer that no process parsed. The engine did not fail, and what it computed is metered. */
  const unparsedOutcome = (work: Work, { reason }: LargeBodyUnread, readAt: number): Effect.Effect<Outcome> => {
    if (reason === "aborted") return abortedOutcome(work)
    return reason === "memory"
      ? incompleteOutcome(work, engineFailed, "The process that reads large answers ran out of memory", readAt)
      : incompleteOutcome(work, unavailable, "The process that reads large answers ended", readAt)
  }

  const readLarge = Effect.fnUntraced(function* (work: Work, bytes: Buffer, requestAbort: RequestAbort) {
    const readAt = performance.now()
    const parsed = yield* Effect.result(largeBodies.readAnswer(bytes, formatOf(work), { orgId: work.admitted.caller.orgId, requestAbort }))
    return parsed._tag === "Success" ? outcomeOf(work, parsed.success, readAt) : yield* unparsedOutcome(work, parsed.failure, readAt)
  })

  return Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, signal: RequestAbort) {
    const { reserve, startedAt } = work.admitted
    let full: Refusal | null = null
    const hasRoom = (bytes: number) => {
      full ??= reserve(bytes)
      return full === null
    }
    const body = yield* readWhole(upstream, maxAnswer, config.answerMillis - (performance.now() - startedAt), signal, hasRoom)
    if (signal.aborted) return yield* abortedOutcome(work)
    if (typeof body === "string") return yield* unreadOutcome(work, body, full ?? unavailable)
    if (body.length > largeBody) return yield* readLarge(work, body, signal)
    return outcomeOf(work, parseAnswer(formatOf(work), body.toString("utf8")), performance.now())
  })
}
