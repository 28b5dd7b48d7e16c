import type { Phase } from "@seatrial/domain"
import { Data } from "effect"

/** The idempotency key was used with different input. */
export class IdempotencyKeyReused extends Data.TaggedError("IdempotencyKeyReused") {}
/** The request is a replay, but the model was deleted in the meantime. */
export class ModelDeleted extends Data.TaggedError("ModelDeleted") {}
/** The organization already has a model with that name. */
export class ModelNameTaken extends Data.TaggedError("ModelNameTaken")<{ readonly slug: string }> {}
/** The organization has no such record. */
export class RecordNotFound extends Data.TaggedError("RecordNotFound") {}
/** The run has already finished. */
export class DeploymentFinished extends Data.TaggedError("DeploymentFinished")<{ readonly phase: Phase }> {}
