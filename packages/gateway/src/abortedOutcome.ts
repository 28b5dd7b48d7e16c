import { Effect } from "effect"
import { abortRefusal } from "./abortRefusal.ts"
import type { IncompleteOutcome } from "./incompleteOutcome.ts"
import { failed, type Outcome, refused } from "./Outcome.ts"
import { clientClosed, keyEnded, unavailable } from "./refusals.ts"
import type { Work } from "./Work.ts"

/** The outcome after the caller left: it keeps the engine's usage, and no answer was delivered. */
export const withoutDelivery = (outcome: Outcome, { progress }: Work): Outcome =>
  outcome.state === "refused"
    ? refused(clientClosed)
    : {
        ...failed(clientClosed, "The caller disconnected.", progress),
        usage: outcome.usage,
        note: `The caller disconnected. ${outcome.note ?? "The usage is that of the whole answer."}`
      }

/**
 * Determines the outcome of an aborted request. If the caller left or its key ended, the computed tokens are counted.
 */
export const makeAbortedOutcome =
  (incompleteOutcome: IncompleteOutcome) =>
  (work: Work): Effect.Effect<Outcome> => {
    const error = abortRefusal(work.admitted.requestAbort)
    if (error === unavailable) return Effect.succeed(failed(error, "The gateway was stopped.", work.progress))
    return incompleteOutcome(work, error, error === keyEnded ? "The API key became invalid" : "The caller disconnected")
  }
