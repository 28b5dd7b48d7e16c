import type { PgClient } from "@effect/sql-pg"
import { AuditEventId, DeploymentId, type Ids, ModelId, type OrgId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import type { Statement } from "effect/sql"
import type { CreateInput } from "../Deployments.ts"
import { insertRun, type NewRun } from "../runs/insertRun.ts"
import { previousChoices, previousSettings } from "./previousSettings.ts"
import { OperationRow } from "./replayOf.ts"

type NewModel = Extract<CreateInput["target"], { readonly _tag: "NewModel" }>
type Redeploy = Extract<CreateInput["target"], { readonly _tag: "Redeploy" }>

/**
 * What a create has in addition to its run: the expressions `bound` (the idempotency key) and `model`, and its audit
 * event.
 */
interface TargetParts {
  readonly expressions: ReadonlyArray<Statement.Fragment>
  readonly ref: Statement.Fragment
  readonly action: "created" | "updated"
  readonly auditFields: object
}

/** `key`: the INSERT of the idempotency key, without its FROM clause. */
interface TargetInput {
  readonly orgId: OrgId
  readonly modelId: ModelId
  readonly key: Statement.Fragment
  readonly at: Date
}

const newModel = (sql: PgClient.PgClient, { slug, source }: NewModel, { at, key, modelId, orgId }: TargetInput): TargetParts => ({
  expressions: [
    sql`bound AS (${key} ON CONFLICT DO NOTHING RETURNING 1)`,
    sql`model AS (
      INSERT INTO models (id, org_id, slug, display_name, hf_repo, ref, created_at, updated_at)
      SELECT ${modelId}, ${orgId}, ${slug}, ${slug}, ${source.repo}, ${source.ref ?? null}, ${at}, ${at} FROM bound
      RETURNING id, org_id, ref, active_revision_id
    )`
  ],
  ref: sql`model.ref`,
  action: "created",
  auditFields: { slug, repo: source.repo, ref: source.ref ?? null }
})

const redeploy = (sql: PgClient.PgClient, { ref }: Redeploy, { key, modelId, orgId }: TargetInput): TargetParts => ({
  expressions: [
    sql`existing AS (
      SELECT id, org_id, ref, active_revision_id FROM models WHERE org_id = ${orgId} AND id = ${modelId} AND deleted_at IS NULL FOR KEY SHARE
    )`,
    sql`bound AS (${key} FROM existing ON CONFLICT DO NOTHING RETURNING 1)`,
    sql`model AS (SELECT existing.* FROM existing, bound)`
  ],
  ref: sql`coalesce(${ref}, model.ref)`,
  action: "updated",
  auditFields: { ref }
})

/** A redeploy without settings keeps the settings of the model's last run. */
const settingsOf = (sql: PgClient.PgClient, { serving, target }: CreateInput): Pick<NewRun, "keptChoices" | "serving"> =>
  Object.keys(serving).length > 0 || target._tag === "NewModel"
    ? { serving: sql`${sql.json(serving)}`, keptChoices: sql`NULL` }
    : { serving: sql.literal(previousSettings("model")), keptChoices: sql.literal(previousChoices("model")) }

/**
 * The whole create as one statement, hence one transaction. The idempotency row goes first: a second create with the
 * same key waits there until the first commits, and then inserts nothing. If the model does not exist, the key is not
 * bound.
 */
export const makeInsertOnce = (sql: PgClient.PgClient, ids: Ids["Service"]) =>
  Effect.fnUntraced(function* (input: CreateInput, now: number) {
    const { caller, serve, serving, target } = input
    const at = new Date(now)
    const id = yield* ids.make(DeploymentId, now)
    const auditId = yield* ids.make(AuditEventId, now)
    const key = sql`
      INSERT INTO idempotency_keys (org_id, operation, key, input_hash, deployment_id, created_at)
      SELECT ${caller.orgId}, 'deployments.create', ${input.idempotencyKey}, ${input.inputHash}, ${id}, ${at}`
    const parts =
      target._tag === "NewModel"
        ? newModel(sql, target, { orgId: caller.orgId, modelId: yield* ids.make(ModelId, now), key, at })
        : redeploy(sql, target, { orgId: caller.orgId, modelId: target.modelId, key, at })
    const after = { deployment_id: id, serve, serving, ...parts.auditFields }
    const rows = yield* insertRun(sql, {
      id,
      at,
      expressions: parts.expressions,
      ref: parts.ref,
      ...settingsOf(sql, input),
      serve,
      startedBy: caller.userId,
      traceparent: input.traceparent ?? null,
      following: [
        sql`audited AS (
          INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
          SELECT org_id, ${at}, ${auditId}, 'user', ${caller.userId}, 'model_config', model_id, ${parts.action}, 'null'::jsonb, ${sql.json(after)}
          FROM inserted
        )`
      ]
    })
    return yield* Effect.map(Schema.decodeUnknownEffect(Schema.Array(OperationRow))(rows), (operations) => operations[0])
  })
