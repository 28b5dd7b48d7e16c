import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
import type { WholeAnswer } from "./dialects/Dialect.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { handleEngineError } from "./handleEngineError.ts"
import type { IncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, noUsage, type Outcome } from "./Outcome.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { readWhole } from "./readWhole.ts"
import { engineFailed, engineTimeout } from "./refusals.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"
import type { Work } from "./Work.ts"

/** Largest answer that is not streamed, in bytes. */
const maxAnswer = 16 * 1024 * 1024

/** The outcome of an answer that was read completely. */
const outcomeOf = (work: Work, answer: WholeAnswer): Outcome => {
  const { admitted, progress } = work
  const { checked, routedRequest } = admitted
  const { finished, finishReason, usage } = answer
  if (!finished) {
    routedRequest.failed()
    return { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage }
  }
  routedRequest.answered()
  if (usage !== null && work.sentAt !== null) routedRequest.observePace(usage.output_tokens / checked.choices, performance.now() - work.sentAt)
  return {
    state: "completed",
    status: 200,
    usage: usage ?? noUsage,
    finishReason,
    error: null,
    note: usage === null ? "The engine reported no usage." : null,
    body: restoreModelName(routedRequest.route, checked)(answer.body)
  }
}

/** Reads an answer that is not streamed and determines its outcome. */
export const makeReadAnswer = (config: GatewaySettings, incompleteOutcome: IncompleteOutcome, abortedOutcome: ReturnType<typeof makeAbortedOutcome>) => {
  /** The outcome of an answer that could not be read to its end. */
  const unreadOutcome = Effect.fnUntraced(function* (work: Work, fault: "late" | "large" | "broken") {
    const { requestAbort, routedRequest } = work.admitted
    if (fault === "late" && requestAbort.aborted) return yield* abortedOutcome(work)
    if (fault === "late") return yield* incompleteOutcome(work, engineTimeout, "The time for the answer ended", routedRequest.workedUntil)
    // The caller decides how large an answer becomes, for example with log probabilities. The engine did not fail.
    if (fault === "large") return yield* incompleteOutcome(work, engineFailed, "The answer exceeded 16 MiB")
    routedRequest.failed()
    return failed(engineFailed, "The engine's answer broke off.", work.progress)
  })

  return Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, signal: RequestAbort) {
    const body = yield* readWhole(upstream, maxAnswer, config.answerMillis - (performance.now() - work.admitted.startedAt), signal)
    if (signal.aborted) return yield* abortedOutcome(work)
    if (typeof body === "string") return yield* unreadOutcome(work, body)
    const text = body.toString("utf8")
    const answer = work.dialect.readWhole(text)
    return answer === null ? handleEngineError(text, 200, work) : outcomeOf(work, answer)
  })
}
