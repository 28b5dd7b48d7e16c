import type { PgClient } from "@effect/sql-pg"
import { type DeploymentId, type OrgId, startsDiffer } from "@seatrial/domain"
import { Clock, Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { leads } from "../OperatorTerms.ts"

/** How long new engines avoid a node whose GPU failed, milliseconds. */
const avoidedMillis = 86_400_000

/** The only code that always is the node's fault. Other problems, such as slowness, may be caused by the run. */
const ofNode = "gpu_fault"

/** Records a problem of a run on a node, one row for each code with the time of its last occurrence. */
export const noteNodeFault = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.noteNodeFault")(function* (id: DeploymentId, orgId: OrgId, fault: { readonly node: string; readonly code: string }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(sql`
      INSERT INTO node_faults (org_id, deployment_id, node, code, at)
      SELECT org_id, id, ${fault.node}::text, ${fault.code}::text, ${at}::timestamptz FROM deployments
      WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id}
      ON CONFLICT (org_id, deployment_id, node, code) DO UPDATE SET at = excluded.at`)
  })

/**
 * SQL condition: the revision (a table alias of the statement) gets no requests because the answers of every engine
 * that was tried differ from the verified ones.
 */
export const differs = (sql: PgClient.PgClient, revision: "r" | "s") => sql`(
  EXISTS (SELECT FROM node_faults nf JOIN deployments nd ON nd.org_id = nf.org_id AND nd.id = nf.deployment_id
    WHERE nd.org_id = ${sql(revision)}.org_id AND nd.revision_id = ${sql(revision)}.id AND nf.code = ${startsDiffer})
  AND NOT EXISTS (SELECT FROM endpoints ne WHERE ne.org_id = ${sql(revision)}.org_id AND ne.revision_id = ${sql(revision)}.id))`

/**
 * Nodes to avoid for the run's engine: nodes that it failed on, and nodes whose GPU failed for any organization in the
 * last day. Only the operator reads this.
 */
export const avoidedNodes = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ id: Schema.String, orgId: Schema.String, since: Schema.Finite }),
    Result: Schema.Struct({ node: Schema.String }),
    execute: ({ id, orgId, since }) => sql`
      SELECT node FROM node_faults WHERE org_id = ${orgId} AND deployment_id = ${id}
      UNION SELECT node FROM node_faults WHERE at > ${new Date(since)} AND code = ${ofNode}
      ORDER BY node LIMIT 100`
  })
  return Effect.fn("Runs.avoidedNodes")(function* (id: DeploymentId, orgId: OrgId) {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* Effect.orDie(find({ id, orgId, since: now - avoidedMillis }))
    return rows.map(({ node }) => node)
  })
}
