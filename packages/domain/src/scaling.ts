import { Schema } from "effect"

/** The most engines that a model may have. */
export const maxReplicas = 64

/** How many engines serve a model, as the API shows it: an addition to the contract's records. */
export const ModelScaling = Schema.Struct({
  replicas: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxReplicas }))
}).annotate({ identifier: "ModelScaling" })
export type ModelScaling = typeof ModelScaling.Type
