import type { PgClient } from "@effect/sql-pg"
import type { DeploymentId, ModelId, RevisionId, UserId } from "@seatrial/domain"
import type { Statement } from "effect/sql"

export interface NewRun {
  readonly id: DeploymentId
  readonly at: Date
  /**
   * Common table expressions. One of them is `model`, with `org_id` and `id`: it has one row, or none if no run is to
   * be inserted.
   */
  readonly expressions: ReadonlyArray<Statement.Fragment>
  /** SQL for the columns `ref`, `serving` and `kept_choices`; the SQL may read `model`. */
  readonly ref: Statement.Fragment
  readonly serving: Statement.Fragment
  readonly keptChoices: Statement.Fragment
  readonly serve: boolean
  readonly startedBy?: UserId
  readonly traceparent?: string | null
  /** The `ModelDeployment` object that the run is for. */
  readonly applied?: { readonly namespace: string; readonly name: string }
  /** Further common table expressions that read `inserted` (`org_id`, `id`, `model_id`). */
  readonly following?: ReadonlyArray<Statement.Fragment>
}

/**
 * Inserts a run with its first history entry and its outbox row, and notifies the operator: the only INSERT into
 * `deployments`.
 */
export const insertRun = (
  sql: PgClient.PgClient,
  { applied, at, expressions, following = [], id, keptChoices, ref, serve, serving, startedBy, traceparent }: NewRun
): Statement.Statement<{ readonly id: DeploymentId; readonly modelId: ModelId; readonly revisionId: RevisionId | null; readonly phase: "screening" }> => sql`
  WITH ${sql.csv(expressions)},
  inserted AS (
    INSERT INTO deployments (id, org_id, model_id, phase, phase_since, ref, serving, kept_choices, serve, started_by_user_id, traceparent,
      applied_namespace, applied_name, created_at, updated_at)
    SELECT ${id}, model.org_id, model.id, 'screening', ${at}, ${ref}, ${serving}, ${keptChoices}, ${serve}, ${startedBy ?? null}, ${traceparent ?? null},
      ${applied?.namespace ?? null}, ${applied?.name ?? null}, ${at}, ${at}
    FROM model
    RETURNING id, org_id, model_id
  ),
  ${sql.csv([
    sql`entered AS (
      INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason) SELECT org_id, id, 1, 'screening', ${at}, 'Created' FROM inserted
    )`,
    sql`work AS (INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, ${at} FROM inserted)`,
    ...following
  ])}
  SELECT id, model_id AS "modelId", NULL AS "revisionId", 'screening' AS phase, pg_notify('deployments', id) FROM inserted`
