import type { PgClient } from "@effect/sql-pg"
import { type DeploymentId, type OrgId, startsDiffer } from "@seatrial/domain"
import { Clock, Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { leads } from "../OperatorTerms.ts"

/** How long new engines keep away from a node whose card failed, milliseconds. */
const avoidedMillis = 86_400_000

/** The fault that is the node's own, whoever meets it. That it was slow for one run may be that run's: another node may be as slow for it. */
const ofNode = "gpu_fault"

/** Notes that something went wrong with a run on a node, once of each kind, with when it did last. */
export const noteNodeFault = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.noteNodeFault")(function* (id: DeploymentId, orgId: OrgId, fault: { readonly node: string; readonly code: string }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(sql`
      INSERT INTO node_faults (org_id, deployment_id, node, code, at)
      SELECT org_id, id, ${fault.node}::text, ${fault.code}::text, ${at}::timestamptz FROM deployments
      WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id}
      ON CONFLICT (org_id, deployment_id, node, code) DO UPDATE SET at = excluded.at`)
  })

/** Whether nothing of that revision (a table's name in the statement) has traffic since every engine that was tried answers otherwise than what was verified. */
export const differs = (sql: PgClient.PgClient, revision: "r" | "s") => sql`(
  EXISTS (SELECT FROM node_faults nf JOIN deployments nd ON nd.org_id = nf.org_id AND nd.id = nf.deployment_id
    WHERE nd.org_id = ${sql(revision)}.org_id AND nd.revision_id = ${sql(revision)}.id AND nf.code = ${startsDiffer})
  AND NOT EXISTS (SELECT FROM endpoints ne WHERE ne.org_id = ${sql(revision)}.org_id AND ne.revision_id = ${sql(revision)}.id))`

/** Nodes that an engine of the run had better not come to: where it failed before, and where any organisation's card failed in the last day. Only the operator reads it. */
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
