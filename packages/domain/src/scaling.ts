import { Schema } from "effect"
import { EngineCapacity } from "./engineCapacity.ts"

/** The most engines that a model may have. */
export const maxReplicas = 64

/** The share of the engines' measured capacity that the autoscaler aims to use, unless the model sets another. */
export const defaultTarget = 0.8

const replicasFrom = (minimum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum: maxReplicas }))
export const ScalingTarget = Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 1 }))

/** A fixed number of engines. */
export const FixedReplicas = Schema.Struct({ replicas: replicasFrom(1) })

/** The limits between which the autoscaler sets the number of engines. */
export const ReplicaLimits = Schema.Struct({ min_replicas: replicasFrom(0), max_replicas: replicasFrom(1), target: Schema.optionalKey(ScalingTarget) }).check(
  Schema.makeFilter(({ max_replicas, min_replicas }) =>
    min_replicas < max_replicas ? undefined : { path: ["min_replicas"], issue: "must be below max_replicas" }
  )
)

export type ReplicaLimits = typeof ReplicaLimits.Type

/** How many engines are to serve a model: a fixed number, or limits for the autoscaler. */
export const ScalingRequest = Schema.Union([FixedReplicas, ReplicaLimits]).annotate({ identifier: "ScalingRequest" })
export type ScalingRequest = typeof ScalingRequest.Type

/**
 * How many engines serve a model, as the API shows it: an addition to the contract's records. The limits are absent if
 * the number is fixed.
 */
export const ModelScaling = Schema.Struct({
  replicas: replicasFrom(1),
  min_replicas: Schema.optionalKey(replicasFrom(0)),
  max_replicas: Schema.optionalKey(replicasFrom(1)),
  target: Schema.optionalKey(ScalingTarget)
}).annotate({ identifier: "ModelScaling" })
export type ModelScaling = typeof ModelScaling.Type

/**
 * The scaling of a model after a request. The autoscaler begins with the number that the model has, within its limits.
 */
export const scaledTo = (replicas: number, request: ScalingRequest): ModelScaling => {
  if ("replicas" in request) return { replicas: request.replicas }
  const { max_replicas, min_replicas, target = defaultTarget } = request
  return { replicas: Math.min(max_replicas, Math.max(1, min_replicas, replicas)), min_replicas, max_replicas, target }
}

const Load = { running: Schema.Int, waiting: Schema.Int }

/**
 * The requests that run on all engines of a model or wait at gateways, as gateways reported them in the last half minute.
 * `capacity`: how many requests one engine processes at once; null if it was not measured. `engines`: the engines of the
 * serving revision.
 */
export const ModelLoad = Schema.Struct({
  ...Load,
  capacity: Schema.NullOr(EngineCapacity),
  desired: Schema.Int,
  ready: Schema.Int,
  engines: Schema.Array(Schema.Struct({ pod: Schema.String, reachable: Schema.Boolean, running: Schema.Int }))
}).annotate({ identifier: "ModelLoad" })
export type ModelLoad = typeof ModelLoad.Type
