import type { PgClient } from "@effect/sql-pg"
import { type Choices, DeploymentId, type Ids, ModelId, type ServingRequest } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { AdoptInput, AppliedResources } from "../AppliedResources.ts"
import { writeAudit } from "../audit.ts"
import { MillisFromDate } from "../columns.ts"
import { ModelNameTaken } from "../Deployments.ts"
import { whileLeading } from "../OperatorTerms.ts"
import { insertRun } from "../runs/insertRun.ts"
import { cancelApplied } from "./cancelApplied.ts"
import { lockResource } from "./lock.ts"
import { makeLockNamedModel, type NamedModel } from "./namedModel.ts"

const operation = "modeldeployments.apply"

/** The idempotency key of a version of an object. */
const keyOf = ({ generation, uid }: AdoptInput["resource"]) => `${uid}:${generation}`

/**
 * The model that a version of an object is about. `namedModel`: the object names it; null: the model is the object's
 * own.
 */
interface Target {
  readonly modelId: ModelId
  readonly isNew: boolean
  readonly namedModel: NamedModel | null
}

/** The run of a version of an object. `choices`: who chose each setting, if the object keeps earlier settings. */
interface AdoptedRun {
  readonly id: DeploymentId
  /** Unix milliseconds. */
  readonly at: number
  readonly ref: string | null
  readonly serving: ServingRequest
  readonly choices: Choices | null
}

const adoptionStatements = (sql: PgClient.PgClient) => {
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
  return { findAdopted, findModel, findNewest }
}

/** The model that the object names, the model that its earlier versions created, or a new one. */
const makeTargetOf = (sql: PgClient.PgClient, ids: Ids["Service"], { findModel }: Pick<ReturnType<typeof adoptionStatements>, "findModel">) => {
  const lockNamedModel = makeLockNamedModel(sql)
  const makeModel = Effect.fnUntraced(function* ({ orgId, resource, source }: AdoptInput, now: number) {
    const at = new Date(now)
    const id = yield* ids.make(ModelId, now)
    yield* sql`
      INSERT INTO models (id, org_id, slug, display_name, hf_repo, ref, created_at, updated_at)
      VALUES (${id}, ${orgId}, ${resource.name}, ${resource.name}, ${source.repo}, ${source.ref ?? null}, ${at}, ${at})`
    return id
  })

  return Effect.fnUntraced(function* (input: AdoptInput, now: number) {
    const { name, namespace } = input.resource
    if (input.modelId !== null) {
      const namedModel = yield* lockNamedModel(input.orgId, input.modelId, input)
      const target: Target = { modelId: namedModel.id, isNew: false, namedModel }
      return target
    }
    const own = yield* findModel({ orgId: input.orgId, name, namespace })
    const target: Target = Option.isSome(own)
      ? { modelId: own.value.id, isNew: false, namedModel: null }
      : { modelId: yield* makeModel(input, now), isNew: true, namedModel: null }
    return target
  })
}

/** An object that names a model and has no settings keeps the settings of the model's last run. */
const settingsOf = ({ serving }: AdoptInput, { namedModel }: Target): Pick<AdoptedRun, "choices" | "serving"> =>
  namedModel !== null && Object.keys(serving).length === 0 ? { serving: namedModel.settings, choices: namedModel.choices } : { serving, choices: null }

/** Binds the version and the object to the run. */
const bindRun = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { orgId, resource, specHash }: AdoptInput,
  { modelId, namedModel }: Target,
  { at: now, id }: AdoptedRun
) {
  const { generation, name, namespace, uid } = resource
  const [at, key, namesModel] = [new Date(now), keyOf(resource), namedModel !== null]
  yield* sql`
    INSERT INTO idempotency_keys (org_id, operation, key, input_hash, deployment_id, created_at)
    VALUES (${orgId}, ${operation}, ${key}, ${specHash}, ${id}, ${at})
    ON CONFLICT (org_id, operation, key) DO UPDATE SET input_hash = ${specHash}, deployment_id = ${id}, created_at = ${at}`
  yield* sql`
    INSERT INTO applied_resources (org_id, namespace, name, uid, generation, spec_hash, model_id, names_model, deployment_id, created_at, updated_at)
    VALUES (${orgId}, ${namespace}, ${name}, ${uid}, ${generation}, ${specHash}, ${modelId}, ${namesModel}, ${id}, ${at}, ${at})
    ON CONFLICT (namespace, name) DO UPDATE SET org_id = ${orgId}, uid = ${uid}, generation = ${generation}, spec_hash = ${specHash}, model_id = ${modelId},
      names_model = ${namesModel}, deployment_id = ${id}, updated_at = ${at}`
})

const auditAdoption = (
  sql: PgClient.PgClient,
  ids: Ids["Service"],
  { orgId, resource, serve, source }: AdoptInput,
  { isNew, modelId, namedModel }: Target,
  { at, id, ref, serving }: AdoptedRun
) => {
  const { generation, name, namespace, uid } = resource
  return writeAudit(sql, ids, {
    orgId,
    actorKind: "system",
    resourceType: "model_config",
    resourceId: modelId,
    action: isNew ? "created" : "updated",
    before: null,
    after: { deployment_id: id, serve, serving, slug: namedModel?.slug ?? name, repo: source.repo, ref, applied: { namespace, name, uid, generation } },
    at
  })
}

/** Creates the run for a version of an object, once. */
export const adoptResource = (sql: PgClient.PgClient, ids: Ids["Service"]): AppliedResources["Service"]["adopt"] => {
  const { findAdopted, findModel, findNewest } = adoptionStatements(sql)
  const targetOf = makeTargetOf(sql, ids, { findModel })
  const cancel = cancelApplied(sql)

  const adopt = Effect.fnUntraced(function* (input: AdoptInput) {
    const { orgId, resource, serve } = input
    const { name, namespace } = resource
    yield* lockResource(sql, resource)
    const adopted = yield* findAdopted({ orgId, key: keyOf(resource), name, namespace })
    if (Option.isSome(adopted)) return adopted.value.id
    const clock = yield* Clock.currentTimeMillis
    const target = yield* targetOf(input, clock)
    const { modelId } = target
    // Runs of a model are ordered by `created_at`, even if the clocks of their creators differ.
    const newest = yield* findNewest({ orgId, modelId })
    const now = newest.at === null ? clock : Math.max(clock, newest.at + 1)
    const at = new Date(now)
    const id = yield* ids.make(DeploymentId, now)
    const run: AdoptedRun = { id, at: now, ref: input.source.ref ?? target.namedModel?.ref ?? null, ...settingsOf(input, target) }
    // The earlier specification of the object is obsolete.
    yield* cancel(resource, at, "Its ModelDeployment was changed.")
    yield* insertRun(sql, {
      id,
      at,
      expressions: [sql`model AS (SELECT org_id, id FROM models WHERE org_id = ${orgId} AND id = ${modelId})`],
      ref: sql`${run.ref}`,
      serving: sql`${sql.json(run.serving)}`,
      keptChoices: run.choices === null ? sql`NULL` : sql`${sql.json(run.choices)}`,
      serve,
      applied: { namespace, name }
    })
    yield* bindRun(sql, input, target, run)
    yield* auditAdoption(sql, ids, input, target, run)
    return id
  })

  return Effect.fn("AppliedResources.adopt")((input) =>
    adopt(input).pipe(
      (adopting) => whileLeading(sql, adopting),
      Effect.catchReason("SqlError", "UniqueViolation", () => new ModelNameTaken({ slug: input.resource.name }), Effect.die),
      Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
    )
  )
}
