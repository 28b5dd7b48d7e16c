import { Effect } from "effect"
import type { Metering, RequestStart } from "../../src/Metering.ts"

/** Begins a request and waits until its row is committed; dies if it cannot be. */
export const beginRequest = (metering: Metering["Service"], start: RequestStart): Effect.Effect<void> =>
  Effect.callback((resume) => metering.enter(start, resume))
