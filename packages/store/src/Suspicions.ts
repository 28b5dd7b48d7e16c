import { PgClient } from "@effect/sql-pg"
import { idMillis, mostSuspectRequests, type OrgId, type Suspicion, type SuspicionId } from "@seatrial/domain"
import { Context, Effect, Layer, Option } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition, type JsonPage, type Page, type PageRequest, pageOf } from "./Page.ts"
import { engineKey, engineOf } from "./requests/engineKey.ts"
import { jsonPageOf, type PageRow, pageStatement } from "./requests/jsonPage.ts"
import { tenantOf } from "./requests/statements.ts"
import { recordOf, type SuspicionRow } from "./suspicionRecord.ts"

/** A probe that was answered at `since` was sent to an idle engine, this long before at most. See `probed` in the operator. */
const longestProbe = "interval '5 seconds'"

/** SQL for the end of a request. Its latency is bounded, because an interval is. */
const endedAt = "created_at + least(coalesce(latency_ms, 0), 86400000) * interval '1 millisecond'"

/**
 * SQL conditions: the ended requests that the engine of the suspicion `s` answered at or after `since`, also after it was
 * withdrawn. One range of the index `requests_engine`. The engine was idle before the probe that was answered at `since`.
 */
const answered = `${engineKey("org_id", "engine")} = ${engineKey("s.org_id", engineOf("s.pod_uid"))} AND engine = ${engineOf("s.pod_uid")}
  AND state <> 'running' AND created_at >= s.since - ${longestProbe} AND created_at < coalesce(s.returned_at, 'infinity') AND ${endedAt} >= s.since`

const requestCount = `(SELECT count(*)::int FROM (SELECT FROM organization_requests AS requests WHERE ${answered} LIMIT ${mostSuspectRequests}) AS counted)`

/** One page of suspicions plus one row. Requests are counted for these rows only. */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, { after, limit }: PageRequest): Statement.Statement<Row> =>
  sql<Row>`
    SELECT s.id, s.created_at, model_id, deployment_id, revision_id, pod, since, withdrawn_at, probes, evidence, engines, ${sql.literal(requestCount)} AS requests
    FROM ${tenantOf(sql, sql`${orgId}`)} CROSS JOIN LATERAL (
      SELECT * FROM suspicions WHERE ${sql.and([sql`org_id = tenant.org_id`, ...afterPosition(sql, "suspicions", after)])}
      ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}
    ) AS s ORDER BY created_at DESC, id DESC`

/** One page of the requests of a suspicion plus one. No row if there is no such suspicion. */
export const requestsStatement = (sql: SqlClient.SqlClient, orgId: OrgId, id: SuspicionId, { after, limit }: PageRequest): Statement.Statement<PageRow> => {
  const requests = sql`(
      SELECT * FROM organization_requests AS requests WHERE ${sql.and([sql.literal(answered), ...afterPosition(sql, "requests", after)])}
      ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}
    ) AS page`
  return sql<PageRow>`
    SELECT listed.*
    FROM ${tenantOf(sql, sql`${orgId}`)}
    CROSS JOIN LATERAL (SELECT * FROM suspicions WHERE org_id = tenant.org_id AND created_at = ${new Date(idMillis(id))} AND id = ${id}) AS s
    CROSS JOIN LATERAL (${pageStatement(sql, limit, requests)}) AS listed`
}

/** The suspicions about an organization's engines, as the API returns them. */
export class Suspicions extends Context.Service<
  Suspicions,
  {
    readonly list: (orgId: OrgId, page: PageRequest) => Effect.Effect<Page<Suspicion>>
    /** The requests of a suspicion as JSON text; none if the organization has no such suspicion. */
    readonly requestsJson: (orgId: OrgId, id: SuspicionId, page: PageRequest) => Effect.Effect<Option.Option<JsonPage>>
  }
>()("seatrial/Suspicions") {
  static readonly layerSql = Layer.effect(
    Suspicions,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      return Suspicions.of({
        list: Effect.fn("Suspicions.list")(function* (orgId, page) {
          const rows = yield* Effect.orDie(listStatement<SuspicionRow>(sql, orgId, page))
          return pageOf(
            rows.map((row) => ({ ...recordOf(row), requests: row.requests })),
            page.limit
          )
        }),
        requestsJson: Effect.fn("Suspicions.requestsJson")(function* (orgId, id, page) {
          const [row] = yield* Effect.orDie(requestsStatement(sql, orgId, id, page))
          return Option.map(Option.fromUndefinedOr(row), jsonPageOf)
        })
      })
    })
  )
}
