import type { PgClient } from "@effect/sql-pg"
import { Choices, ModelId, type OrgId, ServingRequest } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { AdoptInput } from "../AppliedResources.ts"
import { previousChoices, previousSettings } from "../deployments/previousSettings.ts"
import { NamedModelRefused } from "./NamedModelRefused.ts"

const NamedModelRow = Schema.Struct({
  id: ModelId,
  slug: Schema.String,
  repo: Schema.String,
  ref: Schema.NullOr(Schema.String),
  settings: ServingRequest,
  choices: Schema.NullOr(Choices)
})
/** A model that an object names, with the settings and choices of its last run. */
export type NamedModel = typeof NamedModelRow.Type

/**
 * Finds the model that an object names, and locks it until the transaction ends, so that only one of two concurrent
 * objects gets it.
 */
export const makeLockNamedModel = (sql: PgClient.PgClient) => {
  const findNamed = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
    Result: NamedModelRow,
    execute: ({ modelId, orgId }) => sql`
      SELECT m.id, m.slug, m.hf_repo AS repo, m.ref, ${sql.literal(previousSettings("m"))} AS settings,
        ${sql.literal(previousChoices("m"))} AS choices
      FROM models m WHERE m.org_id = ${orgId} AND m.id = ${modelId} AND m.deleted_at IS NULL FOR NO KEY UPDATE`
  })
  const findOtherObject = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String, name: Schema.String, namespace: Schema.String }),
    Result: Schema.Struct({ place: Schema.String }),
    execute: ({ modelId, name, namespace, orgId }) => sql`
      SELECT namespace || '/' || name AS place FROM applied_resources
      WHERE org_id = ${orgId} AND model_id = ${modelId} AND (namespace, name) <> (${namespace}, ${name}) LIMIT 1`
  })
  return Effect.fnUntraced(function* (orgId: OrgId, modelId: ModelId, { resource, source }: AdoptInput) {
    const model = yield* findNamed({ orgId, modelId })
    if (Option.isNone(model)) return yield* new NamedModelRefused({ why: "NotFound", conflict: "" })
    if (model.value.repo !== source.repo) return yield* new NamedModelRefused({ why: "OtherRepository", conflict: model.value.repo })
    const otherObject = yield* findOtherObject({ orgId, modelId, name: resource.name, namespace: resource.namespace })
    if (Option.isSome(otherObject)) return yield* new NamedModelRefused({ why: "Applied", conflict: otherObject.value.place })
    return model.value
  })
}
