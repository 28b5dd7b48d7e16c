import { defineResource, objectSchema } from "@seatrial/kube"
import { Effect, Result, Schema } from "effect"
import { ModelDeployment, ModelDeploymentSpec, ModelDeploymentStatus } from "./ModelDeployment.ts"
import { specProblem } from "./specProblem.ts"

/**
 * A `ModelDeployment` as the operator reads it: its metadata is enough to retire it. The specification is decoded when
 * it is used; see `readSpec`. A status that does not match its schema counts as absent, because the operator writes it
 * again.
 */
export const WatchedDeployment = defineResource({
  ...ModelDeployment,
  schema: objectSchema({
    spec: Schema.optionalKey(Schema.Unknown),
    status: Schema.optionalKey(ModelDeploymentStatus.pipe(Schema.catchDecoding(() => Effect.succeedNone)))
  })
})
export type WatchedDeployment = (typeof WatchedDeployment.schema)["Type"]

const decodeSpec = Schema.decodeUnknownResult(ModelDeploymentSpec)

/** The specification, or which of its fields cannot be read and why. */
export const readSpec = ({ spec }: WatchedDeployment): Result.Result<ModelDeploymentSpec, string> => Result.mapError(decodeSpec(spec), specProblem)
