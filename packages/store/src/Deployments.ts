import { PgClient } from "@effect/sql-pg"
import {
  type Calibration,
  type Deployment,
  DeploymentDetail,
  type DeploymentId,
  Ids,
  type ModelId,
  type OrgId,
  Phase,
  type RepositoryFacts,
  type RevisionId,
  type ServingRequest,
  type Source,
  type UserId
} from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { Caller } from "./ApiKeys.ts"
import { IsoFromDate, isoText, revisionJson } from "./columns.ts"
import { createDeployment } from "./deployments/create.ts"
import { DeploymentFinished, type IdempotencyKeyReused, type ModelDeleted, type ModelNameTaken, RecordNotFound } from "./deployments/errors.ts"
import { findProgress, type ShownProgress } from "./deployments/findProgress.ts"
import { type FactsOf, knownFacts } from "./deployments/knownFacts.ts"
import { makeReplayOf } from "./deployments/replayOf.ts"
import { type DeploymentQuery, type DeploymentRow, deploymentOf, joined, listStatement, summary } from "./deployments/statements.ts"
import { measuredStarts } from "./measuredStarts.ts"
import { type Page, pageOf } from "./Page.ts"
import { transition } from "./runs/transition.ts"

export * from "./deployments/errors.ts"

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

/** SQL for the columns of one deployment. */
const detail = `${summary},
  (SELECT json_agg(json_build_object('status', p.phase, 'at', ${isoText("p.at")}) ORDER BY p.seq)
    FROM deployment_phases p WHERE p.org_id = d.org_id AND p.deployment_id = d.id) AS phases,
  coalesce(r.checks -> 'checks', '[]') AS checks,
  ${revisionJson} AS revision`

const readStatements = (sql: PgClient.PgClient) => {
  const findDetail = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: DetailRow,
    execute: ({ id, orgId }) => sql`SELECT ${sql.literal(detail)} FROM ${sql.literal(joined)} WHERE d.org_id = ${orgId} AND d.id = ${id}`
  })
  const findLimit = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ gpuLimit: Schema.NullOr(Schema.Int) }),
    execute: (orgId) => sql`SELECT gpu_limit AS "gpuLimit" FROM organizations WHERE id = ${orgId}`
  })
  const phaseOf = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Schema.Struct({ phase: Phase }),
    execute: ({ id, orgId }) => sql`SELECT phase FROM deployments WHERE org_id = ${orgId} AND id = ${id}`
  })
  return { findDetail, findFacts: knownFacts(sql), findLimit, phaseOf }
}

const cancelDeployment = (sql: PgClient.PgClient, phaseOf: ReturnType<typeof readStatements>["phaseOf"]): Deployments["Service"]["cancel"] =>
  Effect.fn("Deployments.cancel")(function* (orgId, id, by) {
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

      const { findDetail, findFacts, findLimit, phaseOf } = readStatements(sql)
      const replayOf = makeReplayOf(sql)

      return Deployments.of({
        create: createDeployment(sql, ids, replayOf),
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
        cancel: cancelDeployment(sql, phaseOf)
      })
    })
  )
}
