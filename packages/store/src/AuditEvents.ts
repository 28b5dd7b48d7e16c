import { PgClient } from "@effect/sql-pg"
import { type AuditEvent, type AuditEventId, type AuditResource, idMillis, type OrgId } from "@seatrial/domain"
import { Context, Effect, Layer, Option } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition, type Page, type PageRequest, pageOf, timeBound } from "./Page.ts"

export interface AuditEventQuery extends PageRequest {
  readonly actorUserId?: string
  readonly resourceType?: AuditResource
  /** Unix milliseconds, inclusive. */
  readonly from?: number
  /** Unix milliseconds, exclusive. */
  readonly to?: number
}

/** A row as the driver returns it. It is not decoded: a test checks the responses against the schema of the record. */
type AuditEventRow = Omit<AuditEvent, "object" | "created_at"> & { readonly created_at: Date }

const recordOf = (row: AuditEventRow): AuditEvent => ({
  id: row.id,
  object: "audit_event",
  actor_kind: row.actor_kind,
  actor_user_id: row.actor_user_id,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  action: row.action,
  before: row.before,
  after: row.after,
  created_at: row.created_at.toISOString()
})

const selected = "SELECT id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after, created_at FROM audit_events"

/** One page of events plus one row. */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, query: AuditEventQuery): Statement.Statement<Row> => {
  const clauses = [sql`org_id = ${orgId}`, ...afterPosition(sql, "audit_events", query.after)]
  // Row comparisons, because Postgres estimates almost no rows for two plain bounds on unknown times and may then
  // choose any index.
  if (query.from !== undefined) clauses.push(sql`(created_at, id) >= (${timeBound(query.from)}, '')`)
  if (query.to !== undefined) clauses.push(sql`(created_at, id) < (${timeBound(query.to)}, '')`)
  if (query.actorUserId !== undefined) clauses.push(sql`actor_user_id = ${query.actorUserId}`)
  if (query.resourceType !== undefined) clauses.push(sql`resource_type = ${query.resourceType}`)
  return sql<Row>`${sql.literal(selected)} WHERE ${sql.and(clauses)} ORDER BY created_at DESC, id DESC LIMIT ${query.limit + 1}`
}

/** The audit events of an organization, as the API returns them. */
export class AuditEvents extends Context.Service<
  AuditEvents,
  {
    readonly list: (orgId: OrgId, query: AuditEventQuery) => Effect.Effect<Page<AuditEvent>>
    readonly find: (orgId: OrgId, id: AuditEventId) => Effect.Effect<Option.Option<AuditEvent>>
  }
>()("seatrial/AuditEvents") {
  static readonly layerSql = Layer.effect(
    AuditEvents,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      return AuditEvents.of({
        list: Effect.fn("AuditEvents.list")(function* (orgId, query) {
          const rows = yield* Effect.orDie(listStatement<AuditEventRow>(sql, orgId, query))
          return pageOf(rows.map(recordOf), query.limit)
        }),
        find: Effect.fn("AuditEvents.find")(function* (orgId, id) {
          const rows = sql<AuditEventRow>`${sql.literal(selected)} WHERE org_id = ${orgId} AND created_at = ${new Date(idMillis(id))} AND id = ${id}`
          return Option.map(Option.fromUndefinedOr((yield* Effect.orDie(rows))[0]), recordOf)
        })
      })
    })
  )
}
