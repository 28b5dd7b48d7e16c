import { bucketPhases, type Deployment, type DeploymentBucket, type OrgId } from "@seatrial/domain"
import type { SqlClient, Statement } from "effect/sql"
import { callableName } from "../columns.ts"
import { afterPosition, type PageRequest } from "../Page.ts"

export interface DeploymentQuery extends PageRequest {
  readonly modelId?: string
  readonly bucket?: DeploymentBucket
}

export const summary = `
  d.id, 'deployment' AS object, d.model_id, ${callableName} AS model, d.phase AS status, d.failure_code || ': ' || d.failure_text AS failure_detail,
  d.created_at, d.updated_at, d.ended_at, d.revision_id, r.hf_revision, d.started_by_user_id`

const joins = `
  JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
  JOIN organizations o ON o.id = d.org_id
  LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id`

export const joined = `deployments d ${joins}`

/** The condition of a bucket, identical to the condition of its partial index. */
const bucketClause: Record<DeploymentBucket, string> = {
  running: "d.ended_at IS NULL",
  succeeded: `d.phase = '${bucketPhases.succeeded[0]}'`,
  failed: `d.phase = '${bucketPhases.failed[0]}'`,
  stopped: `d.phase = '${bucketPhases.stopped[0]}'`
}

/**
 * A row of the list as the driver returns it. It is not decoded: a test checks the responses against the schema of the
 * record.
 */
export type DeploymentRow = Omit<Deployment, "created_at" | "updated_at" | "ended_at"> & {
  readonly created_at: Date
  readonly updated_at: Date
  readonly ended_at: Date | null
}

export const deploymentOf = (row: DeploymentRow): Deployment => ({
  ...row,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  ended_at: row.ended_at === null ? null : row.ended_at.toISOString()
})

/**
 * One page of runs plus one row. The limit applies before the joins, whose estimates would otherwise make the planner
 * avoid the index in list order.
 */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, query: DeploymentQuery): Statement.Statement<Row> => {
  const clauses = [sql`d.org_id = ${orgId}`, ...afterPosition(sql, "d", query.after)]
  if (query.modelId !== undefined) clauses.push(sql`d.model_id = ${query.modelId}`)
  if (query.bucket !== undefined) clauses.push(sql`${sql.literal(bucketClause[query.bucket])}`)
  return sql<Row>`
    SELECT ${sql.literal(summary)}
    FROM (SELECT * FROM deployments d WHERE ${sql.and(clauses)} ORDER BY d.created_at DESC, d.id DESC LIMIT ${query.limit + 1}) d ${sql.literal(joins)}
    ORDER BY d.created_at DESC, d.id DESC`
}
