import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
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

/** Reads an answer that is not streamed and determines its outcome. */
export const makeReadAnswer = (config: GatewaySettings, incompleteOutcome: IncompleteOutcome, abortedOutcome: ReturnType<typeof makeAbortedOutcome>) =>
  Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
    const { route } = routedRequest
    const body = yield* readWhole(upstream, maxAnswer, config.answerMillis - (performance.now() - startedAt), signal)
    if (signal.aborted || (body === "late" && requestAbort.aborted)) return yield* abortedOutcome(work)
    if (body === "late") return yield* incompleteOutcome(work, engineTimeout, "The time for the answer ended", routedRequest.workedUntil)
    // The caller decides how large an answer becomes, for example with log probabilities. The engine did not fail.
    if (body === "large") return yield* incompleteOutcome(work, engineFailed, "The answer exceeded 16 MiB")
    if (body === "broken") {
      routedRequest.failed()
      return failed(engineFailed, "The engine's answer broke off.", progress)
    }
    const text = body.toString("utf8")
    const answer = work.dialect.readWhole(text)
    if (answer === null) return handleEngineError(text, 200, work)
    const { finished, finishReason, usage } = answer
    if (!finished) {
      routedRequest.failed()
      return { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage }
    }
    routedRequest.answered()
    if (usage !== null && work.sentAt !== null) routedRequest.observePace(usage.output_tokens / checked.choices, performance.now() - work.sentAt)
    const bodyForCaller = restoreModelName(route, checked)(answer.body)
    return {
      state: "completed",
      status: 200,
      usage: usage ?? noUsage,
      finishReason,
      error: null,
      note: usage === null ? "The engine reported no usage." : null,
      body: bodyForCaller
    } satisfies Outcome
  })
