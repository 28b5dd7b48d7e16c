import type { PgClient } from "@effect/sql-pg"
import { AuditEventId, canEnter, fallsBack, type Ids, isFinished, maxRequeues, type Phase } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { isOwnWrite, leads } from "../OperatorTerms.ts"
import type { Runs, ServingPlan } from "../Runs.ts"
import { activateRun } from "./activate.ts"

/** Characters of a failure's text that are kept. */
const failureLength = 500

/** Phases in which a run keeps its host class. */
const holdsClass = (phase: Phase): boolean => !["screening", "materializing", "waiting", "queued"].includes(phase)

/** The run's revision, not tried yet, gets another host class and what follows from it; its auditors see both. */
const placed = (sql: PgClient.PgClient, plan: ServingPlan, { at, auditId }: { readonly at: Date; readonly auditId: AuditEventId }) => {
  const { capabilities, engineVersion, estimate, settings } = plan
  return sql`
      planned AS (
        SELECT r.org_id, r.id, r.settings, r.engine_version FROM revisions r JOIN moved ON r.org_id = moved.org_id AND r.id = moved.revision_id
        WHERE r.status = 'draft' AND r.verified_at IS NULL AND r.engine_image IS NULL AND r.settings <> ${sql.json(settings)}
      ),
      placed AS (
        UPDATE revisions r SET settings = ${sql.json(settings)}, runtime = ${settings.runtime}, engine_version = ${engineVersion}, estimate = ${sql.json(estimate)},
          max_model_len = ${settings.max_context}, gpu_pool = ${estimate.gpu_pool}, gpu_count = ${estimate.gpu_count}, capabilities = ${sql.json(capabilities)},
          updated_at = greatest(r.updated_at, ${at})
        FROM planned WHERE r.org_id = planned.org_id AND r.id = planned.id
      ),
      audited AS (
        INSERT INTO audit_events (org_id, created_at, id, actor_kind, resource_type, resource_id, action, before, after)
        SELECT org_id, ${at}, ${auditId}, 'system', 'model_config', id, 'updated',
          jsonb_build_object('settings', settings, 'engine_version', engine_version), ${sql.json({ settings, engine_version: engineVersion })}::jsonb
        FROM planned
      ),`
}

/** One compare-and-set on the phase, with its phase row and the operator's work in the same statement. */
export const enterPhase = (sql: PgClient.PgClient, ids: Ids["Service"]): Runs["Service"]["enter"] => {
  const activate = activateRun(sql, ids)
  return Effect.fn("Runs.enter")(function* ({ at: given, failure, from, id, orgId, plan, reason, replaces = false, to }) {
    if (isFinished(from)) return false
    if (!canEnter(from, to)) return yield* Effect.die(new Error(`A run cannot go from ${from} to ${to}`))
    if (to === "activated") return yield* activate({ id, orgId, from })
    const at = new Date(given ?? (yield* Clock.currentTimeMillis))
    const own = yield* isOwnWrite
    const failed = to === "failed"
    const text = (failure?.text ?? reason).slice(0, failureLength)
    const rows = yield* Effect.orDie(sql`
      WITH moved AS (
        UPDATE deployments SET phase = ${to}, phase_since = greatest(phase_since, ${at}), phase_count = phase_count + 1, updated_at = greatest(updated_at, ${at}),
          placements = CASE WHEN ${holdsClass(to)} THEN NULL ELSE placements END, replaces = replaces OR ${replaces}, requeues = requeues + ${fallsBack(from, to) ? 1 : 0},
          ended_at = CASE WHEN ${isFinished(to)} THEN greatest(phase_since, ${at}) END,
          failure_code = ${failed ? (failure?.code ?? "internal") : null},
          failure_text = ${failed ? text : null}
        WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND phase = ${from} AND requeues < ${fallsBack(from, to) ? maxRequeues : maxRequeues + 1}
        RETURNING org_id, id, revision_id, phase_count, phase_since
      ),
      retried AS (
        UPDATE revisions r SET checks = NULL, likelihood = NULL, measured = NULL, benchmark = NULL, updated_at = ${at}
        FROM moved WHERE ${fallsBack(from, to)} AND r.org_id = moved.org_id AND r.id = moved.revision_id AND r.status = 'draft' AND r.verified_at IS NULL
      ),
      ${plan === undefined ? sql.literal("") : placed(sql, plan, { at, auditId: yield* ids.make(AuditEventId, at.getTime()) })}
      entered AS (
        INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason) SELECT org_id, id, phase_count, ${to}, phase_since, ${reason} FROM moved
      ),
      work AS (
        INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, ${at} FROM moved WHERE ${!own} RETURNING deployment_id
      )
      SELECT (SELECT count(pg_notify('deployments', deployment_id)) FROM work) FROM moved`)
    return rows.length > 0
  })
}
