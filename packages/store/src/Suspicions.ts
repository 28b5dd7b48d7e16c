import { PgClient } from "@effect/sql-pg"
import { idMillis, mostSuspectRequests, type OrgId, type Suspicion, type SuspicionId } from "@seatrial/domain"
import { Context, Effect, Layer, Option } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition, type JsonPage, type Page, type PageRequest, pageOf } from "./Page.ts"
import { engineKey, engineOf } from "./requests/engineKey.ts"
import { jsonPageOf, type PageRow, pageStatement } from "./requests/jsonPage.ts"
import { tenantOf } from "./requests/statements.ts"

/** A row as the driver returns it. It is not decoded: a test checks the responses against the schema of the record. */
interface SuspicionRow {
  readonly id: string
  readonly created_at: Date
  readonly model_id: string
  readonly deployment_id: string
  readonly revision_id: string
  readonly pod: string
  readonly since: Date
  readonly withdrawn_at: Date | null
  readonly probes: number
  readonly evidence: number
  readonly engines: number
  readonly requests: number
}

const recordOf = (row: SuspicionRow): Suspicion => ({
  id: row.id,
  object: "suspicion",
  model_id: row.model_id,
  deployment_id: row.deployment_id,
  revision_id: row.revision_id,
  engine: row.pod,
  since: row.since.toISOString(),
  withdrawn_at: row.withdrawn_at?.toISOString() ?? null,
  probes: row.probes,
  evidence: Math.round(Math.log10(row.evidence) * 10) / 10,
  engines: row.engines,
  requests: row.requests,
  requests_url: `/v1/org/suspicions/${row.id}/requests`,
  created_at: row.created_at.toISOString()
})

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
          return pageOf(rows.map(recordOf), page.limit)
        }),
        requestsJson: Effect.fn("Suspicions.requestsJson")(function* (orgId, id, page) {
          const [row] = yield* Effect.orDie(requestsStatement(sql, orgId, id, page))
          return Option.map(Option.fromUndefinedOr(row), jsonPageOf)
        })
      })
    })
  )
}
