import { Data, Runtime } from "effect"

/** The system cannot start. The message says why and what to do. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {
  override readonly [Runtime.errorReported] = false
}
