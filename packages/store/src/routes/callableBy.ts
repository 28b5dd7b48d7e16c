import type { PgClient } from "@effect/sql-pg"
import type { OrgId } from "@seatrial/domain"
import type { Statement } from "effect/sql"
import { callableName } from "../columns.ts"

/**
 * SQL for the model `m` and its organization `o` that an organization may call by a name: at most one row, found by an
 * index.
 */
export const callableBy = (sql: PgClient.PgClient, orgId: OrgId, model: string): Statement.Fragment => {
  const slug = model.slice(model.indexOf("/") + 1)
  return sql`m.slug = ${slug} AND ${sql.literal(callableName)} = ${model} AND (m.org_id = ${orgId} OR m.visibility = 'public')`
}
