import type { PgClient } from "@effect/sql-pg"
import { type DeploymentId, type Failure, type Phase, phaseTraits } from "@seatrial/domain"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { type MovedRun, traceTransition } from "./traceTransition.ts"

export interface Transition {
  readonly to: Phase
  readonly at: Date
  /** Recorded in the run's history. */
  readonly reason: string
  /** SQL condition on the table `deployments d` that selects the runs to move. */
  readonly where: Statement.Fragment
  /** A further table that the condition refers to. */
  readonly from?: Statement.Fragment
  /** Further assignments of the UPDATE. */
  readonly set?: ReadonlyArray<Statement.Fragment>
  /** Required if `to` is `failed`. */
  readonly failure?: Failure
  /** Further common table expressions; they may read `moved` (`org_id`, `id`, `revision_id`). */
  readonly expressions?: ReadonlyArray<Statement.Fragment>
  /** Whether to put the moved runs into the operator's outbox and notify it. */
  readonly notifiesOperator: boolean
}

/**
 * A run without the history row of the phase that it left: another transaction wrote that row while this one waited.
 */
type Moved = MovedRun | { readonly id: DeploymentId; readonly from: null }

const moving = (
  sql: PgClient.PgClient,
  { at, expressions = [], failure, from, notifiesOperator, reason, set = [], to, where }: Transition
): Statement.Statement<Moved> => {
  const assignments = [
    sql`phase = ${to}`,
    sql`phase_since = greatest(d.phase_since, ${at})`,
    sql`phase_count = d.phase_count + 1`,
    sql`updated_at = greatest(d.updated_at, ${at})`,
    ...(phaseTraits[to].terminal ? [sql`ended_at = greatest(d.phase_since, ${at})`] : []),
    ...(failure === undefined ? [] : [sql`failure_code = ${failure.code}`, sql`failure_text = ${failure.text}`]),
    ...set
  ]
  const entered = sql`
    entered AS (
      INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason)
      SELECT org_id, id, phase_count, ${to}, phase_since, ${reason} FROM moved
    )`
  const work = sql`work AS (INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, ${at} FROM moved)`
  return sql`
    WITH moved AS (
      UPDATE deployments d SET ${sql.csv(assignments)} ${from === undefined ? sql.literal("") : sql`FROM ${from}`}
      WHERE ${where}
      RETURNING d.org_id, d.id, d.revision_id, d.phase_count, d.phase_since, d.traceparent
    ),
    ${sql.csv([...expressions, entered, ...(notifiesOperator ? [work] : [])])}
    SELECT moved.id, o.slug AS "orgSlug", moved.traceparent, p.phase AS "from", p.at AS since, moved.phase_since AS until
      ${sql.literal(notifiesOperator ? ", pg_notify('deployments', moved.id)" : "")}
    FROM moved JOIN organizations o ON o.id = moved.org_id
    LEFT JOIN deployment_phases p ON p.org_id = moved.org_id AND p.deployment_id = moved.id AND p.seq = moved.phase_count - 1`
}

/**
 * Moves runs to a phase: the only statement that changes `deployments.phase`. The same statement writes the history and
 * the outbox. A phase never starts before the phase that it follows, even if the clocks of the writers differ. The end
 * of the phase is counted and traced, also if a user ends it. Returns the runs that moved.
 */
export const transition = (sql: PgClient.PgClient, input: Transition): Effect.Effect<ReadonlyArray<{ readonly id: DeploymentId }>, SqlError.SqlError> =>
  Effect.tap(moving(sql, input), (rows) =>
    Effect.forEach(rows, (run) => (run.from === null ? Effect.void : traceTransition(run, input.to, input.failure)), { discard: true })
  )
