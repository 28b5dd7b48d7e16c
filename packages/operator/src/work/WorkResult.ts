import type { NamedFailure } from "@seatrial/domain"
import { Data } from "effect"

/** A final result that ends the run. */
export class WorkRefused extends Data.TaggedError("WorkRefused")<{ readonly failure: NamedFailure }> {}

/**
 * The work could not be done now, and the model is not at fault. Another attempt may succeed. `message` may be shown to
 * the caller.
 */
export class WorkUnavailable extends Data.TaggedError("WorkUnavailable")<{
  readonly message: string
  /** Whether the engine answered a valid request with an HTTP 5xx. */
  readonly isEngineError?: boolean
}> {}
