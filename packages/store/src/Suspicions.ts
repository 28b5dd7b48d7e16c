import { PgClient } from "@effect/sql-pg"
import { mostSuspectRequests, type OrgId, type Suspicion } from "@seatrial/domain"
import { Context, Effect, Layer } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition, type Page, type PageRequest, pageOf } from "./Page.ts"
import { rangeKeys } from "./requests/rangeKey.ts"
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

/** The requests that the list of requests shows for the same model and times. */
const requestsUrl = ({ model_id, since, withdrawn_at }: SuspicionRow): string =>
  `/v1/org/requests?model_id=${model_id}&from=${since.getTime()}${withdrawn_at === null ? "" : `&to=${withdrawn_at.getTime()}`}`

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
  requests_url: requestsUrl(row),
  created_at: row.created_at.toISOString()
})

/** The requests of one status class in the time of the suspicion `s`: a range of the index of the request list. */
const requestsIn = (status: "2" | "4" | "5") => `(
  SELECT FROM organization_requests AS requests
  WHERE ${rangeKeys.model} = s.org_id || ' ${status} ' || s.model_id AND state <> 'running' AND created_at >= s.since
    AND created_at < coalesce(s.withdrawn_at, 'infinity') LIMIT ${mostSuspectRequests})`

const requestCount = `(SELECT least(count(*), ${mostSuspectRequests})::int FROM (${requestsIn("2")} UNION ALL ${requestsIn("4")} UNION ALL ${requestsIn("5")}) AS answered)`

/** One page of suspicions plus one row. Requests are counted for these rows only. */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, { after, limit }: PageRequest): Statement.Statement<Row> =>
  sql<Row>`
    SELECT s.id, s.created_at, model_id, deployment_id, revision_id, pod, since, withdrawn_at, probes, evidence, engines, ${sql.literal(requestCount)} AS requests
    FROM ${tenantOf(sql, sql`${orgId}`)} CROSS JOIN LATERAL (
      SELECT * FROM suspicions WHERE ${sql.and([sql`org_id = tenant.org_id`, ...afterPosition(sql, "suspicions", after)])}
      ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}
    ) AS s ORDER BY created_at DESC, id DESC`

/** The suspicions about an organization's engines, as the API returns them. */
export class Suspicions extends Context.Service<
  Suspicions,
  {
    readonly list: (orgId: OrgId, page: PageRequest) => Effect.Effect<Page<Suspicion>>
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
        })
      })
    })
  )
}
