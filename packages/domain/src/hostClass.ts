import { Schema } from "effect"
import { Micros } from "./money.ts"
import { HostClassName, Runtime } from "./serving.ts"

/** The properties of a cluster's `HostClass` that the API and the fit use. The first runtime is the default. */
export const HostClass = Schema.Struct({
  name: HostClassName,
  runtimes: Schema.NonEmptyArray(Schema.Struct({ runtime: Runtime, image: Schema.String })),
  /** The card class, for example `NVIDIA-H100-80GB-HBM3`. */
  gpu_pool: Schema.String,
  gpu_count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  /** Bytes of one GPU. */
  gpu_memory_bytes: Schema.Int,
  /** Maximum total bytes of a model's files, if each engine reads a copy on its node; absent if there is no limit. */
  weights_limit_bytes: Schema.optionalKey(Schema.Int),
  /** Micro-dollars per GPU and hour. */
  price_per_gpu_hour_micros: Micros,
  /** Whether its GPUs are simulated. If so, all figures measured on it describe the reference engine. */
  simulated: Schema.Boolean
})
export type HostClass = typeof HostClass.Type
