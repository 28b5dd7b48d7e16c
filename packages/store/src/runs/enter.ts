import type { PgClient } from "@effect/sql-pg"
import { AuditEventId, canEnter, type Failure, fallsBack, type Ids, isFinished, isUnplaced, maxRequeues, type Phase } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { isOwnWrite, leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"
import { activateRun } from "./activate.ts"
import type { ServingPlan } from "./Run.ts"
import { resultColumns } from "./resultColumns.ts"
import { transition } from "./transition.ts"

const maxFailureLength = 500

/** Deletes the trial results of an unverified revision: the next trial starts over. */
const trialReset = (sql: PgClient.PgClient, at: Date) => sql`
  retried AS (
    UPDATE revisions r SET ${sql.csv(resultColumns.map((column) => sql`${sql(column)} = NULL`))}, updated_at = ${at}
    FROM moved WHERE r.org_id = moved.org_id AND r.id = moved.revision_id AND r.status = 'draft' AND r.verified_at IS NULL
  )`

/**
 * Changes the host class of a revision that has not been tried, with everything that depends on it, and records both
 * states in the audit log.
 */
const planChange = (sql: PgClient.PgClient, plan: ServingPlan, { at, auditId }: { readonly at: Date; readonly auditId: AuditEventId }) => {
  const { capabilities, engineVersion, estimate, settings } = plan
  return [
    sql`planned AS (
      SELECT r.org_id, r.id, r.settings, r.engine_version FROM revisions r JOIN moved ON r.org_id = moved.org_id AND r.id = moved.revision_id
      WHERE r.status = 'draft' AND r.verified_at IS NULL AND r.engine_image IS NULL AND r.settings <> ${sql.json(settings)}
    )`,
    sql`placed AS (
      UPDATE revisions r SET settings = ${sql.json(settings)}, runtime = ${settings.runtime}, engine_version = ${engineVersion}, estimate = ${sql.json(estimate)},
        max_model_len = ${settings.max_context}, gpu_pool = ${estimate.gpu_pool}, gpu_count = ${estimate.gpu_count}, capabilities = ${sql.json(capabilities)},
        updated_at = greatest(r.updated_at, ${at})
      FROM planned WHERE r.org_id = planned.org_id AND r.id = planned.id
    )`,
    sql`audited AS (
      INSERT INTO audit_events (org_id, created_at, id, actor_kind, resource_type, resource_id, action, before, after)
      SELECT org_id, ${at}, ${auditId}, 'system', 'model_config', id, 'updated',
        jsonb_build_object('settings', settings, 'engine_version', engine_version), ${sql.json({ settings, engine_version: engineVersion })}::jsonb
      FROM planned
    )`
  ]
}

const changedColumns = (sql: PgClient.PgClient, { isLoss, replaces, to }: { readonly to: Phase; readonly isLoss: boolean; readonly replaces: boolean }) => [
  ...(isUnplaced(to) ? [] : [sql`placements = NULL`]),
  ...(replaces ? [sql`replaces = true`] : []),
  ...(isLoss ? [sql`requeues = d.requeues + 1`] : [])
]

const failureOf = (failure: Failure | undefined, reason: string) => ({
  code: failure?.code ?? "internal",
  text: (failure?.text ?? reason).slice(0, maxFailureLength)
})

/** Moves one run if it is still in `from`, in one statement. */
export const enterPhase = (sql: PgClient.PgClient, ids: Ids["Service"]): Runs["Service"]["enter"] => {
  const activate = activateRun(sql, ids)
  return Effect.fn("Runs.enter")(function* ({ at: time, failure, from, hadNoGpus = false, id, orgId, plan, reason, replaces = false, to }) {
    if (isFinished(from)) return false
    if (!canEnter(from, to)) return yield* Effect.die(new Error(`A run cannot go from ${from} to ${to}`))
    if (to === "activated") return yield* activate({ id, orgId, from })
    const at = new Date(time ?? (yield* Clock.currentTimeMillis))
    const requeued = fallsBack(from, to)
    const isLoss = requeued && !hadNoGpus
    const rows = yield* transition(sql, {
      to,
      at,
      reason,
      where: sql`${yield* leads(sql)} AND d.org_id = ${orgId} AND d.id = ${id} AND d.phase = ${from} AND d.requeues < ${isLoss ? maxRequeues : maxRequeues + 1}`,
      set: changedColumns(sql, { to, isLoss, replaces }),
      ...(to === "failed" ? { failure: failureOf(failure, reason) } : {}),
      expressions: [
        ...(requeued ? [trialReset(sql, at)] : []),
        ...(plan === undefined ? [] : planChange(sql, plan, { at, auditId: yield* ids.make(AuditEventId, at.getTime()) }))
      ],
      notifiesOperator: !(yield* isOwnWrite)
    }).pipe(Effect.orDie)
    return rows.length > 0
  })
}
