import type { NamedFailure } from "@seatrial/domain"
import { Data } from "effect"

/** A final answer that ends the run. */
export class WorkRefused extends Data.TaggedError("WorkRefused")<{ readonly failure: NamedFailure }> {}

/** It could not be done now, by no fault of the model; trying again may help. `message` may be shown. */
export class WorkUnavailable extends Data.TaggedError("WorkUnavailable")<{ readonly message: string }> {}
