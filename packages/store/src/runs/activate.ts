import type { PgClient } from "@effect/sql-pg"
import {
  type CheckReport,
  type DeploymentId,
  type Ids,
  ModelId,
  mayActivateFrom,
  type OrgId,
  RevisionId,
  StoredCheckReport,
  type Verification
} from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "../audit.ts"
import { isOwnWrite, whileLeading } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"
import { endAlarms } from "./publishEndpoints.ts"
import { transition } from "./transition.ts"

/**
 * The part of the trial that receipts contain. Fingerprints are comparable only for a known GPU type, so they are
 * omitted if it is unknown.
 */
const verificationOf = (report: CheckReport): Verification => ({
  checks: report.checks,
  ...(report.fingerprint_card === null ? {} : { outputFingerprints: report.fingerprints, fingerprintCard: report.fingerprint_card }),
  ...(report.fidelity === undefined ? {} : { fidelity: report.fidelity })
})

const LockedRun = Schema.Struct({
  modelId: ModelId,
  revisionId: RevisionId,
  serve: Schema.Boolean,
  hfRevision: Schema.String,
  engineImage: Schema.NullOr(Schema.String),
  engineDigest: Schema.NullOr(Schema.String),
  checks: Schema.NullOr(StoredCheckReport),
  verified: Schema.Boolean,
  earlier: Schema.NullOr(RevisionId)
})
type LockedRun = typeof LockedRun.Type

/** The run that is activated, and the time. */
interface Activation {
  readonly orgId: OrgId
  readonly id: DeploymentId
  readonly run: LockedRun
  readonly at: Date
}

/** Locks the model first, so that two runs of one model cannot both activate a revision. */
const makeLockRun = (sql: PgClient.PgClient) =>
  SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String, from: Schema.String }),
    Result: LockedRun,
    execute: ({ from, id, orgId }) => sql`
      SELECT d.model_id AS "modelId", d.revision_id AS "revisionId", d.serve, r.hf_revision AS "hfRevision", r.engine_image AS "engineImage",
        r.engine_digest AS "engineDigest", r.checks, r.verified_at IS NOT NULL AS verified, m.active_revision_id AS earlier
      FROM models m
      JOIN deployments d ON d.org_id = m.org_id AND d.model_id = m.id
      JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
      WHERE d.org_id = ${orgId} AND d.id = ${id} AND d.phase = ${from} AND m.deleted_at IS NULL
      FOR UPDATE OF m, d, r`
  })

/** Whether the revision becomes the serving one of a model that serves another one. */
const replacesRevision = ({ earlier, revisionId, serve }: LockedRun): boolean => serve && earlier !== null && earlier !== revisionId

const supersede = (sql: PgClient.PgClient, { at, orgId, run }: Activation) => sql`
  UPDATE revisions SET status = 'superseded', updated_at = ${at}
  WHERE org_id = ${orgId} AND model_id = ${run.modelId} AND status = 'active' AND id <> ${run.revisionId}`

const verifyRevision = (sql: PgClient.PgClient, { at, orgId, run }: Activation, checks: CheckReport) => sql`
  UPDATE revisions SET status = CASE WHEN ${run.serve} THEN 'active' ELSE status END,
    verification = coalesce(verification, ${sql.json(verificationOf(checks))}), verified_at = coalesce(verified_at, ${at}), left_at = NULL, updated_at = ${at}
  WHERE org_id = ${orgId} AND id = ${run.revisionId}`

/** A published model keeps its rates: they are copied from the previous revision, because a draft has none. */
const copyRates = (sql: PgClient.PgClient, { orgId, run }: Activation) => sql`
  UPDATE revisions r SET input_micros_per_mtok = e.input_micros_per_mtok, output_micros_per_mtok = e.output_micros_per_mtok,
    cache_read_micros_per_mtok = e.cache_read_micros_per_mtok, cache_write_micros_per_mtok = e.cache_write_micros_per_mtok
  FROM models m JOIN revisions e ON e.org_id = m.org_id AND e.id = m.active_revision_id
  WHERE m.org_id = ${orgId} AND m.id = ${run.modelId} AND m.visibility = 'public' AND r.org_id = ${orgId} AND r.id = ${run.revisionId}`

const auditActivation = (sql: PgClient.PgClient, ids: Ids["Service"], { at, id, orgId, run }: Activation) =>
  writeAudit(sql, ids, {
    orgId,
    actorKind: "system",
    resourceType: "model_config",
    resourceId: run.modelId,
    action: "activated",
    before: { revision_id: run.earlier },
    after: {
      revision_id: run.revisionId,
      deployment_id: id,
      hf_revision: run.hfRevision,
      engine_image: run.engineImage,
      ...(run.engineDigest === null ? {} : { engine_digest: run.engineDigest })
    },
    at: at.getTime()
  })

/** Routes the model's requests to the revision. */
const serveRevision = Effect.fnUntraced(function* (sql: PgClient.PgClient, ids: Ids["Service"], activation: Activation) {
  const { at, orgId, run } = activation
  // Counts as a use: otherwise the engine of an old candidate would idle immediately.
  yield* sql`
    INSERT INTO revision_uses AS u (org_id, revision_id, used_at)
    SELECT org_id, id, ${at} FROM revisions WHERE org_id = ${orgId} AND id = ${run.revisionId} AND jsonb_exists(settings, 'hold_seconds')
    ON CONFLICT (revision_id) DO UPDATE SET used_at = greatest(u.used_at, excluded.used_at)`
  // A new revision does not enable a disabled model.
  yield* sql`
    UPDATE models SET status = CASE status WHEN 'disabled' THEN 'disabled' ELSE 'active' END, active_revision_id = ${run.revisionId}, hf_revision = ${run.hfRevision}, updated_at = ${at}
    WHERE org_id = ${orgId} AND id = ${run.modelId} RETURNING pg_notify('routes', active_revision_id)`
  yield* auditActivation(sql, ids, activation)
})

/**
 * A model with one engine moves at once: engines of earlier revisions get no requests from now on. This is the last
 * statement of an activation, because a publication also locks the run before its endpoints.
 */
const withdrawEarlier = Effect.fnUntraced(function* (sql: PgClient.PgClient, { at, orgId, run }: Activation) {
  const gone = yield* sql<{ readonly pod: string }>`
    DELETE FROM endpoints e USING models m, revisions r
    WHERE m.org_id = ${orgId} AND m.id = ${run.modelId} AND m.replicas = 1
      AND r.org_id = m.org_id AND r.model_id = m.id AND r.status = 'superseded' AND e.org_id = r.org_id AND e.revision_id = r.id
    RETURNING e.pod`
  if (gone.length > 0)
    yield* endAlarms(
      sql,
      orgId,
      gone.map(({ pod }) => pod),
      at
    )
})

/**
 * Enqueues the affected runs: the runs of the superseded revision must withdraw it, and the run that created this
 * revision must keep its engine. `isOwn`: the operator itself writes, and continues with the run.
 */
const enqueueAffected = (sql: PgClient.PgClient, { at, id, orgId, run }: Activation, isOwn: boolean) => sql`
  WITH work AS (
    INSERT INTO outbox (org_id, deployment_id, created_at)
    SELECT org_id, id, ${at} FROM deployments
    WHERE org_id = ${orgId} AND (id = ${id} OR revision_id = ${run.revisionId} OR (${run.serve} AND revision_id = ${run.earlier})) AND NOT (${isOwn} AND id = ${id})
    RETURNING deployment_id
  )
  SELECT pg_notify('deployments', deployment_id) FROM work`

/** Ends a run as `activated` in one transaction. If the run is to serve, its revision becomes the serving one. */
export const activateRun = (sql: PgClient.PgClient, ids: Ids["Service"]): Runs["Service"]["activate"] => {
  const lockRun = makeLockRun(sql)
  return Effect.fn("Runs.activate")(function* ({ from, id, orgId }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const isOwn = yield* isOwnWrite
    return yield* Effect.gen(function* () {
      const locked = yield* lockRun({ orgId, id, from })
      if (Option.isNone(locked)) return false
      const run = locked.value
      if (!mayActivateFrom(from, run)) return false
      if (run.checks === null || !run.checks.passed) return yield* Effect.die(new Error(`The checks of ${run.revisionId} have not passed`))
      const activation: Activation = { orgId, id, run, at }
      yield* transition(sql, {
        to: "activated",
        at,
        reason: run.serve ? "Serving" : "Verified",
        where: sql`d.org_id = ${orgId} AND d.id = ${id}`,
        notifiesOperator: false
      })
      if (replacesRevision(run)) yield* supersede(sql, activation)
      yield* verifyRevision(sql, activation, run.checks)
      if (replacesRevision(run)) yield* copyRates(sql, activation)
      if (run.serve && run.earlier !== run.revisionId) yield* serveRevision(sql, ids, activation)
      yield* enqueueAffected(sql, activation, isOwn)
      if (replacesRevision(run)) yield* withdrawEarlier(sql, activation)
      return true
    }).pipe((transition) => whileLeading(sql, transition), Effect.orDie)
  })
}
