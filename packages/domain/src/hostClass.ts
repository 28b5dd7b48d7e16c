import { Schema } from "effect"
import { Micros } from "./money.ts"
import { HostClassName, Runtime } from "./serving.ts"

/** What the API and the fit know of a `HostClass` of the cluster. The first runtime is the default. */
export const HostClass = Schema.Struct({
  name: HostClassName,
  runtimes: Schema.NonEmptyArray(Schema.Struct({ runtime: Runtime, image: Schema.String })),
  /** The card class, for example `NVIDIA-H100-80GB-HBM3`. */
  gpu_pool: Schema.String,
  gpu_count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  /** Bytes of one GPU. */
  gpu_memory_bytes: Schema.Int,
  /** Bytes that all files of a model may have, where each engine reads a copy of its own on its node; absent where nothing limits them. */
  weights_limit_bytes: Schema.optionalKey(Schema.Int),
  /** Micro-dollars per GPU and hour. */
  price_per_gpu_hour_micros: Micros,
  /** Whether its GPUs are simulated; then every figure measured on it is a figure of the reference engine. */
  simulated: Schema.Boolean
})
export type HostClass = typeof HostClass.Type
