import { Effect } from "effect"
import type { makeAbortedOutcome } from "./abortedOutcome.ts"
import { readEngineError } from "./engineError.ts"
import { handleEngineError } from "./handleEngineError.ts"
import type { IncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, type Outcome } from "./Outcome.ts"
import { engineFailed, engineTimeout, unavailable } from "./refusals.ts"
import type { Relayed } from "./relay.ts"
import type { LargeBodyUnread } from "./vocabulary/LargeBodyLane.ts"
import type { Work } from "./Work.ts"

const noUsageNote = "The engine reported no usage: the output tokens are those that were delivered, the input is unknown."

/** The outcome of a request that the engine answered completely. */
const completedOutcome = Effect.fnUntraced(function* ({ admitted, progress: { finishReason, reportedUsage, usage } }: Work) {
  if (reportedUsage === null) yield* Effect.logWarning("the engine reported no usage").pipe(Effect.annotateLogs("request_id", admitted.id))
  return {
    state: "completed",
    status: 200,
    usage,
    finishReason,
    error: null,
    note: reportedUsage === null ? noUsageNote : null,
    body: null
  } satisfies Outcome
})

/** Determines the outcome of a request from how the stream of its engine ended. */
export const makeRelayedOutcome = (incompleteOutcome: IncompleteOutcome, abortedOutcome: ReturnType<typeof makeAbortedOutcome>) => {
  const silentOutcome = (work: Work, isFirst: boolean) => {
    const { requestAbort, routedRequest } = work.admitted
    if (requestAbort.aborted) return abortedOutcome(work)
    return isFirst
      ? Effect.succeed(failed(engineTimeout, "The engine stopped sending.", work.progress))
      : incompleteOutcome(work, engineTimeout, "The engine stopped sending", routedRequest.workedUntil)
  }

  const brokenOutcome = Effect.fnUntraced(function* (work: Work, isFirst: boolean) {
    if (isFirst) return { retry: "lost", outcome: failed(engineFailed, "The engine's stream broke off.", work.progress) } as const
    if (work.progress.firstContentAt === null) work.admitted.routedRequest.failed()
    return yield* incompleteOutcome(work, engineFailed, "The engine's stream broke off")
  })

  /** The engine reported an error. */
  const failedOutcome = Effect.fnUntraced(function* (work: Work, payload: string, isFirst: boolean) {
    if (isFirst) return handleEngineError(payload, 200, work)
    const { admitted, progress } = work
    const { checked, routedRequest } = admitted
    // Some engines send a first frame before they do any work.
    const at = { endpoint: checked.endpoint, maxModelLen: routedRequest.route.maxModelLen }
    if (progress.firstContentAt === null && readEngineError(payload, 200, at) === engineFailed) routedRequest.failed()
    return progress.contentFrames > 0 ? yield* incompleteOutcome(work, engineFailed, "The engine failed") : failed(engineFailed, "The engine failed.", progress)
  })

  /** No process read a large frame. The engine did not fail. */
  const unreadFrameOutcome = (work: Work, reason: LargeBodyUnread["reason"]) => {
    if (reason === "aborted") return abortedOutcome(work)
    return reason === "memory"
      ? incompleteOutcome(work, engineFailed, "The process that reads large frames ran out of memory")
      : incompleteOutcome(work, unavailable, "The process that reads large frames ended")
  }

  return (work: Work, relayed: Relayed) => {
    switch (relayed._tag) {
      case "Aborted":
        return abortedOutcome(work)
      case "Silent":
        return silentOutcome(work, relayed.first)
      case "TooLarge":
        // The caller decides how large a frame becomes, for example with log probabilities. The engine did not fail.
        return incompleteOutcome(work, engineFailed, "A frame of the stream exceeded 4 MiB")
      case "Full":
        return incompleteOutcome(work, relayed.refusal, "The gateway had no memory for a frame of the stream")
      case "Unread":
        return unreadFrameOutcome(work, relayed.reason)
      case "Broken":
        return brokenOutcome(work, relayed.first)
      case "Failed":
        return failedOutcome(work, relayed.payload, relayed.first)
      case "Done":
        return completedOutcome(work)
    }
  }
}
