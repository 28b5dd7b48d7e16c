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
  /** Default true, which also needs `models:write`; false prepares a checked candidate that does not serve. */
  serve: Schema.optionalKey(Schema.Boolean)
}

/** A new model from a source; its name is by default the repository's, in lower case. */
export const NewModel = Schema.Struct({ model_name: Schema.optionalKey(ModelSlug), source: Source, ...common }).annotate({ identifier: "DeployNewModel" })
export type NewModel = typeof NewModel.Type

/** Another run of a model that exists; what `serving` leaves out stays as it was. */
export const Redeploy = Schema.Struct({
  model_id: Schema.String.check(Schema.isBetweenLength(1, 64)),
  ref: Schema.optionalKey(Ref),
  ...common
}).annotate({ identifier: "RedeployModel" })
export type Redeploy = typeof Redeploy.Type

export const CreatePayload = Schema.Union([NewModel, Redeploy])
