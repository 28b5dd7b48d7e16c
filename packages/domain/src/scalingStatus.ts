import { Schema } from "effect"
import { ModelScaling } from "./scaling.ts"

/** Why a model has fewer engines than it should have. */
export const ScalingLimit = Schema.Literals(["no_gpus", "queued_runs", "organization_limit", "funds", "first_engine", "rollout", "max_replicas"])
export type ScalingLimit = typeof ScalingLimit.Type

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * Numbers of engines of a model. `granted`: they have GPUs. `ready`: they serve. `limit`: why not all wanted ones
 * exist.
 */
export const ModelEngines = Schema.Struct({ granted: Count, ready: Count, limit: Schema.NullOr(ScalingLimit) })
export type ModelEngines = typeof ModelEngines.Type

export const noModelEngines: ModelEngines = { granted: 0, ready: 0, limit: null }

/** The scaling of a model with its state, which the API only shows. */
export const ModelScalingState = Schema.Struct({ ...ModelScaling.fields, status: ModelEngines }).annotate({ identifier: "ModelScalingState" })
export type ModelScalingState = typeof ModelScalingState.Type
