import type { PgClient } from "@effect/sql-pg"
import type { ResourcePlace } from "../AppliedResources.ts"
import { transition } from "../runs/transition.ts"

/** Cancels the object's run if it is unfinished. Call it inside a transaction that holds the object's lock. */
export const cancelApplied =
  (sql: PgClient.PgClient) =>
  ({ name, namespace }: ResourcePlace, at: Date, reason: string) =>
    transition(sql, {
      to: "cancelled",
      at,
      reason,
      from: sql`applied_resources a`,
      where: sql`a.namespace = ${namespace} AND a.name = ${name} AND d.org_id = a.org_id AND d.id = a.deployment_id AND d.ended_at IS NULL`,
      notifiesOperator: true
    })
