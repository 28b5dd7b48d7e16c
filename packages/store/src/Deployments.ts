import { PgClient } from "@effect/sql-pg"
import {
  AuditEventId,
  type Calibration,
  type Deployment,
  DeploymentDetail,
  DeploymentId,
  Ids,
  ModelId,
  type OrgId,
  Phase,
  type RepositoryFacts,
  RevisionId,
  type ServingRequest,
  type Source,
  type UserId
} from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema, type Statement } from "effect/sql"
import type { Caller } from "./ApiKeys.ts"
import { IsoFromDate, isoText, MillisFromDate, revisionJson } from "./columns.ts"
import { findProgress, type ShownProgress } from "./deployments/findProgress.ts"
import { type FactsOf, knownFacts } from "./deployments/knownFacts.ts"
import { previousChoices, previousSettings } from "./deployments/previousSettings.ts"
import { type DeploymentQuery, type DeploymentRow, deploymentOf, joined, listStatement, summary } from "./deployments/statements.ts"
import { measuredStarts } from "./measuredStarts.ts"
import { type Page, pageOf } from "./Page.ts"
import { insertRun } from "./runs/insertRun.ts"
import { transition } from "./runs/transition.ts"

/** The idempotency key was used with different input. */
export class IdempotencyKeyReused extends Data.TaggedError("IdempotencyKeyReused") {}
/** The request is a replay, but the model was deleted in the meantime. */
export class ModelDeleted extends Data.TaggedError("ModelDeleted") {}
/** The organization already has a model with that name. */
export class ModelNameTaken extends Data.TaggedError("ModelNameTaken")<{ readonly slug: string }> {}
/** The organization has no such record. */
export class RecordNotFound extends Data.TaggedError("RecordNotFound") {}
/** The run has already finished. */
export class DeploymentFinished extends Data.TaggedError("DeploymentFinished")<{ readonly phase: Phase }> {}

export interface CreateInput {
  readonly caller: Caller
  readonly idempotencyKey: string
  /** SHA-256 of the canonical decoded input, lower-case hexadecimal. */
  readonly inputHash: string
  /** A new model from a source, or another run of an existing model. */
  readonly target:
    | { readonly _tag: "NewModel"; readonly source: Source; readonly slug: string }
    | { readonly _tag: "Redeploy"; readonly modelId: ModelId; readonly ref: string | null }
  readonly serving: ServingRequest
  readonly serve: boolean
  /** The trace context of the request, in the W3C `traceparent` format. */
  readonly traceparent?: string | null
}

export interface Operation {
  readonly id: DeploymentId
  readonly modelId: ModelId
  readonly revisionId: RevisionId | null
  readonly phase: Phase
  /** Whether the operation was created by an earlier request. */
  readonly replayed: boolean
}

const times = { created_at: IsoFromDate, updated_at: IsoFromDate, ended_at: Schema.NullOr(IsoFromDate) }
const DetailRow = Schema.Struct({ ...DeploymentDetail.fields, ...times })
const OperationRow = Schema.Struct({ id: DeploymentId, modelId: ModelId, revisionId: Schema.NullOr(RevisionId), phase: Phase })
const BoundRow = Schema.Struct({ ...OperationRow.fields, inputHash: Schema.String, deleted: Schema.Boolean })

/** Deployments as the API exposes them. Every statement names the organization. */
export class Deployments extends Context.Service<
  Deployments,
  {
    /**
     * Creates the run, its first phase, the model if it is new, the idempotency record, the audit event and the outbox
     * row in one transaction. If the idempotency key is already bound, returns its operation. Of two concurrent calls
     * with one key, the second waits and returns the operation of the first.
     */
    readonly create: (input: CreateInput) => Effect.Effect<Operation, IdempotencyKeyReused | ModelDeleted | ModelNameTaken | RecordNotFound>
    /**
     * The facts that revisions of the organization hold about a repository (or the repository of a model) at a full
     * commit; none if no revision of it exists. Facts of a commit never change.
     */
    readonly knownFacts: (orgId: OrgId, of: FactsOf, commit: string) => Effect.Effect<Option.Option<RepositoryFacts>>
    /** Start times of an architecture that the organization's engines reported. */
    readonly measuredStarts: (orgId: OrgId, architecture: string) => Effect.Effect<ReadonlyArray<Calibration>>
    /** Maximum number of GPUs that the organization may hold; null: no limit. */
    readonly gpuLimit: (orgId: OrgId) => Effect.Effect<number | null>
    /**
     * The operation of an idempotency key if the input is the same; none if no create used the key. Creates nothing.
     */
    readonly findOperation: (
      orgId: OrgId,
      idempotencyKey: string,
      inputHash: string
    ) => Effect.Effect<Option.Option<Operation>, IdempotencyKeyReused | ModelDeleted>
    readonly list: (orgId: OrgId, query: DeploymentQuery) => Effect.Effect<Page<Deployment>>
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<DeploymentDetail>>
    /** The current activity of the run, or the reason why it waits. */
    readonly progress: (orgId: OrgId, id: DeploymentId) => Effect.Effect<Option.Option<ShownProgress>>
    /** Cancels the run with one conditional update, unless it has already finished. */
    readonly cancel: (orgId: OrgId, id: string, by: UserId) => Effect.Effect<DeploymentId, RecordNotFound | DeploymentFinished>
  }
>()("seatrial/Deployments") {
  static readonly layerSql = Layer.effect(
    Deployments,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids

      const detail = `${summary},
        (SELECT json_agg(json_build_object('status', p.phase, 'at', ${isoText("p.at")}) ORDER BY p.seq)
          FROM deployment_phases p WHERE p.org_id = d.org_id AND p.deployment_id = d.id) AS phases,
        coalesce(r.checks -> 'checks', '[]') AS checks,
        ${revisionJson} AS revision`
      const findDetail = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
        Result: DetailRow,
        execute: ({ id, orgId }) => sql`SELECT ${sql.literal(detail)} FROM ${sql.literal(joined)} WHERE d.org_id = ${orgId} AND d.id = ${id}`
      })
      const findFacts = knownFacts(sql)
      const findLimit = SqlSchema.findOne({
        Request: Schema.String,
        Result: Schema.Struct({ gpuLimit: Schema.NullOr(Schema.Int) }),
        execute: (orgId) => sql`SELECT gpu_limit AS "gpuLimit" FROM organizations WHERE id = ${orgId}`
      })
      const findBound = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, key: Schema.String }),
        Result: BoundRow,
        execute: ({ key, orgId }) => sql`
          SELECT d.id, d.model_id AS "modelId", d.revision_id AS "revisionId", d.phase, k.input_hash AS "inputHash", m.deleted_at IS NOT NULL AS deleted
          FROM idempotency_keys k
          JOIN deployments d ON d.org_id = k.org_id AND d.id = k.deployment_id
          JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
          WHERE k.org_id = ${orgId} AND k.operation = 'deployments.create' AND k.key = ${key}`
      })
      const phaseOf = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
        Result: Schema.Struct({ phase: Phase }),
        execute: ({ id, orgId }) => sql`SELECT phase FROM deployments WHERE org_id = ${orgId} AND id = ${id}`
      })

      /**
       * The whole create as one statement, hence one transaction. The idempotency row goes first: a second create with
       * the same key waits there until the first commits, and then inserts nothing. If the model does not exist, the
       * key is not bound.
       */
      const insertOnce = Effect.fnUntraced(function* (input: CreateInput, now: number) {
        const { caller, target } = input
        const at = new Date(now)
        const id = yield* ids.make(DeploymentId, now)
        const auditId = yield* ids.make(AuditEventId, now)
        const fresh = target._tag === "NewModel"
        const modelId = fresh ? yield* ids.make(ModelId, now) : target.modelId
        const after = {
          deployment_id: id,
          serve: input.serve,
          serving: input.serving,
          ...(fresh ? { slug: target.slug, repo: target.source.repo, ref: target.source.ref ?? null } : { ref: target.ref })
        }
        const key = sql`
          INSERT INTO idempotency_keys (org_id, operation, key, input_hash, deployment_id, created_at)
          SELECT ${caller.orgId}, 'deployments.create', ${input.idempotencyKey}, ${input.inputHash}, ${id}, ${at}`
        const bound: ReadonlyArray<Statement.Fragment> = fresh
          ? [
              sql`bound AS (${key} ON CONFLICT DO NOTHING RETURNING 1)`,
              sql`model AS (
                INSERT INTO models (id, org_id, slug, display_name, hf_repo, ref, created_at, updated_at)
                SELECT ${modelId}, ${caller.orgId}, ${target.slug}, ${target.slug}, ${target.source.repo}, ${target.source.ref ?? null}, ${at}, ${at} FROM bound
                RETURNING id, org_id, ref, active_revision_id
              )`
            ]
          : [
              sql`existing AS (
                SELECT id, org_id, ref, active_revision_id FROM models WHERE org_id = ${caller.orgId} AND id = ${modelId} AND deleted_at IS NULL FOR KEY SHARE
              )`,
              sql`bound AS (${key} FROM existing ON CONFLICT DO NOTHING RETURNING 1)`,
              sql`model AS (SELECT existing.* FROM existing, bound)`
            ]
        const hasSettings = Object.keys(input.serving).length > 0 || fresh
        const serving = hasSettings ? sql`${sql.json(input.serving)}` : sql.literal(previousSettings("model"))
        const keptChoices = hasSettings ? sql`NULL` : sql.literal(previousChoices("model"))
        const rows = yield* insertRun(sql, {
          id,
          at,
          expressions: bound,
          ref: fresh ? sql`model.ref` : sql`coalesce(${target.ref}, model.ref)`,
          serving,
          keptChoices,
          serve: input.serve,
          startedBy: caller.userId,
          traceparent: input.traceparent ?? null,
          following: [
            sql`audited AS (
              INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
              SELECT org_id, ${at}, ${auditId}, 'user', ${caller.userId}, 'model_config', model_id, ${fresh ? "created" : "updated"}, 'null'::jsonb, ${sql.json(after)}
              FROM inserted
            )`
          ]
        })
        return yield* Effect.map(Schema.decodeUnknownEffect(Schema.Array(OperationRow))(rows), (operations) => operations[0])
      })

      /**
       * Runs of a model are ordered by `created_at`, but their creators may have different clocks. A run is therefore
       * created at least one millisecond after the newest run. The lock on the model prevents concurrent inserts.
       */
      const insertNext = Effect.fnUntraced(function* (input: CreateInput, modelId: ModelId) {
        yield* sql`SELECT 1 FROM models WHERE org_id = ${input.caller.orgId} AND id = ${modelId} FOR NO KEY UPDATE`
        const newest = yield* findNewest({ orgId: input.caller.orgId, modelId })
        const now = yield* Clock.currentTimeMillis
        return yield* insertOnce(input, newest.at === null ? now : Math.max(now, newest.at + 1))
      }, sql.withTransaction)
      const findNewest = SqlSchema.findOne({
        Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
        Result: Schema.Struct({ at: Schema.NullOr(MillisFromDate) }),
        execute: ({ modelId, orgId }) => sql`SELECT max(created_at) AS at FROM deployments WHERE org_id = ${orgId} AND model_id = ${modelId}`
      })

      const replayOf = Effect.fnUntraced(function* (orgId: OrgId, key: string, hash: string) {
        const earlier = yield* Effect.orDie(findBound({ orgId, key }))
        if (Option.isNone(earlier)) return Option.none()
        const { deleted, inputHash, ...operation } = earlier.value
        if (inputHash !== hash) return yield* new IdempotencyKeyReused()
        if (deleted) return yield* new ModelDeleted()
        return Option.some<Operation>({ ...operation, replayed: true })
      })

      return Deployments.of({
        create: Effect.fn("Deployments.create")(function* (input) {
          const { target } = input
          const insert =
            target._tag === "Redeploy" ? insertNext(input, target.modelId) : Effect.flatMap(Clock.currentTimeMillis, (now) => insertOnce(input, now))
          const created = yield* insert.pipe(
            Effect.catchReason("SqlError", "UniqueViolation", () => new ModelNameTaken({ slug: target._tag === "NewModel" ? target.slug : "" }), Effect.die),
            Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
          )
          if (created !== undefined) return { ...created, replayed: false }
          const earlier = yield* replayOf(input.caller.orgId, input.idempotencyKey, input.inputHash)
          if (Option.isNone(earlier)) return yield* new RecordNotFound()
          return earlier.value
        }),
        findOperation: Effect.fn("Deployments.findOperation")(replayOf),
        measuredStarts: measuredStarts(sql),
        gpuLimit: Effect.fn("Deployments.gpuLimit")((orgId) => Effect.orDie(Effect.map(findLimit(orgId), ({ gpuLimit }) => gpuLimit))),
        knownFacts: Effect.fn("Deployments.knownFacts")((orgId, of, commit) => Effect.orDie(findFacts(orgId, of, commit))),
        list: Effect.fn("Deployments.list")(function* (orgId, query) {
          const rows = yield* Effect.orDie(listStatement<DeploymentRow>(sql, orgId, query))
          return pageOf(rows.map(deploymentOf), query.limit)
        }),
        find: Effect.fn("Deployments.find")((orgId, id) => Effect.orDie(findDetail({ orgId, id }))),
        progress: findProgress(sql),
        cancel: Effect.fn("Deployments.cancel")(function* (orgId, id, by) {
          const at = new Date(yield* Clock.currentTimeMillis)
          const rows = yield* transition(sql, {
            to: "cancelled",
            at,
            reason: "CancelledByUser",
            where: sql`d.org_id = ${orgId} AND d.id = ${id} AND d.ended_at IS NULL`,
            set: [sql`cancelled_by_user_id = ${by}`],
            notifiesOperator: true
          }).pipe(Effect.orDie)
          if (rows[0] !== undefined) return rows[0].id
          const current = yield* Effect.orDie(phaseOf({ orgId, id }))
          if (Option.isNone(current)) return yield* new RecordNotFound()
          return yield* new DeploymentFinished(current.value)
        })
      })
    })
  )
}
