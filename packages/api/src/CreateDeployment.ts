import { ModelSlug, Ref, Source } from "@seatrial/domain"
import { Schema } from "effect"
import { Serving } from "./Preview.ts"

// JSON Schema gets a `pattern` only from a RegExp with the `u` flag.
export const IdempotencyKey = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9._:-]{1,128}$/u, { message: "Expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -" })
).pipe(Schema.brand("IdempotencyKey"))
export type IdempotencyKey = typeof IdempotencyKey.Type

const common = {
  serving: Schema.optionalKey(Serving),
  /** Default true, which also requires `models:write`. False prepares a checked candidate that does not serve. */
  serve: Schema.optionalKey(Schema.Boolean)
}

/** A new model from a source. Its name defaults to the name of the repository, in lower case. */
export const NewModel = Schema.Struct({ model_name: Schema.optionalKey(ModelSlug), source: Source, ...common }).annotate({ identifier: "DeployNewModel" })
export type NewModel = typeof NewModel.Type

/** A redeploy of an existing model. Settings that `serving` omits keep their values. */
export const Redeploy = Schema.Struct({
  model_id: Schema.String.check(Schema.isBetweenLength(1, 64)),
  ref: Schema.optionalKey(Ref),
  ...common
}).annotate({ identifier: "RedeployModel" })
export type Redeploy = typeof Redeploy.Type

export const CreatePayload = Schema.Union([NewModel, Redeploy])
