import type { PgClient } from "@effect/sql-pg"
import { Choices, DeploymentId, type Ids, ModelId, type OrgId, ServingRequest } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { AdoptInput, AppliedResources } from "../AppliedResources.ts"
import { writeAudit } from "../audit.ts"
import { MillisFromDate } from "../columns.ts"
import { ModelNameTaken } from "../Deployments.ts"
import { previousChoices, previousSettings } from "../deployments/previousSettings.ts"
import { whileLeading } from "../OperatorTerms.ts"
import { insertRun } from "../runs/insertRun.ts"
import { cancelApplied } from "./cancelApplied.ts"
import { lockResource } from "./lock.ts"
import { NamedModelRefused } from "./NamedModelRefused.ts"

const operation = "modeldeployments.apply"

/** Creates the run for a version of an object, once. */
export const adoptResource = (sql: PgClient.PgClient, ids: Ids["Service"]): AppliedResources["Service"]["adopt"] => {
  const findAdopted = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, key: Schema.String, name: Schema.String, namespace: Schema.String }),
    Result: Schema.Struct({ id: DeploymentId }),
    // If the object's model was deleted, its binding was deleted too, and the same version starts a new run.
    execute: ({ key, name, namespace, orgId }) => sql`
      SELECT k.deployment_id AS id FROM idempotency_keys k
      JOIN applied_resources a ON a.org_id = k.org_id AND a.namespace = ${namespace} AND a.name = ${name}
      JOIN models m ON m.org_id = a.org_id AND m.id = a.model_id AND m.deleted_at IS NULL
      WHERE k.org_id = ${orgId} AND k.operation = ${operation} AND k.key = ${key}`
  })
  const findModel = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, name: Schema.String, namespace: Schema.String }),
    Result: Schema.Struct({ id: ModelId }),
    execute: ({ name, namespace, orgId }) => sql`
      SELECT m.id FROM applied_resources a JOIN models m ON m.org_id = a.org_id AND m.id = a.model_id
      WHERE a.org_id = ${orgId} AND a.namespace = ${namespace} AND a.name = ${name} AND NOT a.names_model AND m.deleted_at IS NULL
      FOR NO KEY UPDATE OF m`
  })
  const findNewest = SqlSchema.findOne({
    Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
    Result: Schema.Struct({ at: Schema.NullOr(MillisFromDate) }),
    execute: ({ modelId, orgId }) => sql`SELECT max(created_at) AS at FROM deployments WHERE org_id = ${orgId} AND model_id = ${modelId}`
  })

  const makeModel = Effect.fnUntraced(function* ({ orgId, resource, source }: AdoptInput, now: number) {
    const at = new Date(now)
    const id = yield* ids.make(ModelId, now)
    yield* sql`
      INSERT INTO models (id, org_id, slug, display_name, hf_repo, ref, created_at, updated_at)
      VALUES (${id}, ${orgId}, ${resource.name}, ${resource.name}, ${source.repo}, ${source.ref ?? null}, ${at}, ${at})`
    return id
  })

  const findNamed = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
    Result: Schema.Struct({
      id: ModelId,
      slug: Schema.String,
      repo: Schema.String,
      ref: Schema.NullOr(Schema.String),
      settings: ServingRequest,
      choices: Schema.NullOr(Choices)
    }),
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
  /**
   * The model that the object names, locked until the transaction ends, so that only one of two concurrent objects gets
   * it.
   */
  const lockNamedModel = Effect.fnUntraced(function* (orgId: OrgId, modelId: ModelId, { resource, source }: AdoptInput) {
    const model = yield* findNamed({ orgId, modelId })
    if (Option.isNone(model)) return yield* new NamedModelRefused({ why: "NotFound", conflict: "" })
    if (model.value.repo !== source.repo) return yield* new NamedModelRefused({ why: "OtherRepository", conflict: model.value.repo })
    const otherObject = yield* findOtherObject({ orgId, modelId, name: resource.name, namespace: resource.namespace })
    if (Option.isSome(otherObject)) return yield* new NamedModelRefused({ why: "Applied", conflict: otherObject.value.place })
    return model.value
  })
  const cancel = cancelApplied(sql)

  return Effect.fn("AppliedResources.adopt")((input) =>
    Effect.gen(function* () {
      const { orgId, resource, serve, specHash } = input
      const { generation, name, namespace, uid } = resource
      const key = `${uid}:${generation}`
      yield* lockResource(sql, resource)
      const adopted = yield* findAdopted({ orgId, key, name, namespace })
      if (Option.isSome(adopted)) return adopted.value.id
      const clock = yield* Clock.currentTimeMillis
      const namedModel = input.modelId === null ? null : yield* lockNamedModel(orgId, input.modelId, input)
      const existing = namedModel === null ? yield* findModel({ orgId, name, namespace }) : Option.some(namedModel)
      const modelId = Option.isSome(existing) ? existing.value.id : yield* makeModel(input, clock)
      const ref = input.source.ref ?? namedModel?.ref ?? null
      const previous = namedModel !== null && Object.keys(input.serving).length === 0 ? namedModel : null
      const serving = previous?.settings ?? input.serving
      // Runs of a model are ordered by `created_at`, even if the clocks of their creators differ.
      const newest = yield* findNewest({ orgId, modelId })
      const now = newest.at === null ? clock : Math.max(clock, newest.at + 1)
      const at = new Date(now)
      const id = yield* ids.make(DeploymentId, now)
      // The earlier specification of the object is obsolete.
      yield* cancel(resource, at, "Its ModelDeployment was changed.")
      yield* insertRun(sql, {
        id,
        at,
        expressions: [sql`model AS (SELECT org_id, id FROM models WHERE org_id = ${orgId} AND id = ${modelId})`],
        ref: sql`${ref}`,
        serving: sql`${sql.json(serving)}`,
        keptChoices: previous === null || previous.choices === null ? sql`NULL` : sql`${sql.json(previous.choices)}`,
        serve,
        applied: { namespace, name }
      })
      yield* sql`
        INSERT INTO idempotency_keys (org_id, operation, key, input_hash, deployment_id, created_at)
        VALUES (${orgId}, ${operation}, ${key}, ${specHash}, ${id}, ${at})
        ON CONFLICT (org_id, operation, key) DO UPDATE SET input_hash = ${specHash}, deployment_id = ${id}, created_at = ${at}`
      yield* sql`
        INSERT INTO applied_resources (org_id, namespace, name, uid, generation, spec_hash, model_id, names_model, deployment_id, created_at, updated_at)
        VALUES (${orgId}, ${namespace}, ${name}, ${uid}, ${generation}, ${specHash}, ${modelId}, ${namedModel !== null}, ${id}, ${at}, ${at})
        ON CONFLICT (namespace, name) DO UPDATE SET org_id = ${orgId}, uid = ${uid}, generation = ${generation}, spec_hash = ${specHash}, model_id = ${modelId},
          names_model = ${namedModel !== null}, deployment_id = ${id}, updated_at = ${at}`
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "system",
        resourceType: "model_config",
        resourceId: modelId,
        action: Option.isSome(existing) ? "updated" : "created",
        before: null,
        after: {
          deployment_id: id,
          serve,
          serving,
          slug: namedModel?.slug ?? name,
          repo: input.source.repo,
          ref,
          applied: { namespace, name, uid, generation }
        },
        at: now
      })
      return id
    }).pipe(
      (adopting) => whileLeading(sql, adopting),
      Effect.catchReason("SqlError", "UniqueViolation", () => new ModelNameTaken({ slug: input.resource.name }), Effect.die),
      Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
    )
  )
}
