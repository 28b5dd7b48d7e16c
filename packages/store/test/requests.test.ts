import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { encodeIdBody, type OrgId, type RequestRecord } from "@seatrial/domain"
import { Context, Effect, Fiber, Layer, Option } from "effect"
import type { Statement } from "effect/sql"
import { ReadPool } from "../src/Database.ts"
import { type Page, type Position, type RequestQuery, Requests } from "../src/index.ts"
import { ensurePartitions } from "../src/Partitions.ts"
import { findReceiptStatement, findStatement, listStatement } from "../src/requests/statements.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller } from "./support/index.ts"

const start = Date.UTC(2026, 0, 31, 23, 59, 58)
const statuses = [200, 302, 404, 429, 499, 500, 503]

/** Inserts rows directly: many per millisecond, across the end of a month. */
const fill = Effect.fnUntraced(function* (orgId: OrgId, count: number) {
  const sql = yield* PgClient.PgClient
  yield* ensurePartitions(sql, start, start + 10_000)
  const rows = Array.from({ length: count }, (_, index) => {
    const millis = start + Math.floor(index / 7) * 5
    const status = statuses[index % statuses.length] ?? 200
    return {
      org_id: orgId,
      created_at: new Date(millis),
      id: `req_${encodeIdBody(millis, crypto.getRandomValues(new Uint8Array(10)))}`,
      state: index % 50 === 0 ? "running" : status === 429 ? "refused" : "completed",
      model_id: index % 5 === 0 ? null : `mdl_${index % 3}`,
      api_key_id: `key_${index % 4}`,
      endpoint: "/v1/chat/completions",
      status_code: index % 50 === 0 ? null : status
    }
  })
  for (let from = 0; from < rows.length; from += 1_000) {
    const [first, ...rest] = rows.slice(from, from + 1_000)
    if (first !== undefined) yield* sql`INSERT INTO requests ${sql.insert([first, ...rest])}`
  }
  return rows
})

type Filters = Omit<RequestQuery, "limit" | "after">

/** Each filter alone. The compiler reports a filter that is missing. */
const alone: { readonly [Filter in keyof Filters]-?: Pick<Filters, Filter> } = {
  modelId: { modelId: "mdl_1" },
  apiKeyId: { apiKeyId: "key_2" },
  status: { status: "success" },
  from: { from: start + 100 },
  to: { to: start + 2_500 }
}

const queries: ReadonlyArray<Filters> = [
  {},
  ...Object.values(alone),
  { status: "client_error" },
  { status: "server_error" },
  { from: start + 100, to: start + 2_500 },
  { modelId: "mdl_2", apiKeyId: "key_1", status: "client_error", from: start + 50 },
  { modelId: "mdl_nobody" },
  { to: Number.MAX_SAFE_INTEGER, from: 0 }
]
const classes = { success: [200, 399], client_error: [400, 499], server_error: [500, 599] } as const

layer(layerStore, { excludeTestServices: true })("Requests", (it) => {
  it.effect("every filter returns the same pages as an in-memory oracle, while newer requests arrive", () =>
    Effect.gen(function* () {
      const requests = yield* Requests
      const { caller } = yield* makeCaller("oracle")
      const other = yield* makeCaller("oracle-other")
      const { orgId } = caller
      const rows = yield* fill(orgId, 1_500)
      yield* fill(other.caller.orgId, 200)
      const sql = yield* PgClient.PgClient
      for (const query of queries) {
        const range = query.status === undefined ? undefined : classes[query.status]
        const expected = rows
          .filter(
            (row) =>
              row.state !== "running" &&
              (query.modelId === undefined || row.model_id === query.modelId) &&
              (query.apiKeyId === undefined || row.api_key_id === query.apiKeyId) &&
              (range === undefined || (row.status_code !== null && row.status_code >= range[0] && row.status_code <= range[1])) &&
              (query.from === undefined || row.created_at.getTime() >= query.from) &&
              (query.to === undefined || row.created_at.getTime() < query.to)
          )
          .toSorted((a, b) => b.created_at.getTime() - a.created_at.getTime() || (a.id < b.id ? 1 : -1))
          .map(({ id }) => id)
        const listedIds: Array<string> = []
        let after: Position | null = null
        for (let page = 0; page === 0 || after !== null; page++) {
          const batch: Page<RequestRecord> = yield* requests.list(orgId, { ...query, limit: page % 2 === 0 ? 97 : 200, after })
          listedIds.push(...batch.items.map(({ id }) => id))
          after = batch.next
          if (page === 0) {
            const now = Date.now()
            yield* sql`
              INSERT INTO requests (org_id, created_at, id, state, endpoint, status_code)
              VALUES (${orgId}, ${new Date(now)}, ${`req_${encodeIdBody(now, crypto.getRandomValues(new Uint8Array(10)))}`}, 'completed', '/', 299)`
          }
        }
        assert.deepStrictEqual(listedIds, expected, JSON.stringify(query))
        yield* sql`DELETE FROM requests WHERE org_id = ${orgId} AND status_code = 299`
      }
    })
  )

  it.effect("every filter reads only an index range, and a lookup reads one partition", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      // As the server runs them: with row-level security.
      const reads = Context.get(yield* Layer.build(layerRole("server")), ReadPool)
      const requests = yield* Requests
      const { caller } = yield* makeCaller("plans")
      const { orgId } = caller
      const rows = yield* fill(orgId, 20_000)
      const busy = yield* makeCaller("plans-busy")
      yield* sql`
        INSERT INTO requests (org_id, created_at, id, state, model_id, api_key_id, endpoint, status_code)
        SELECT ${busy.caller.orgId}, created_at, id, state, model_id, api_key_id, endpoint, status_code FROM requests WHERE org_id = ${orgId}`
      yield* sql`ANALYZE requests`
      const explain = Effect.fnUntraced(function* (statement: Statement.Statement<object>, options = "") {
        const [text, parameters] = statement.compile()
        const plan = yield* reads.unsafe<{ "QUERY PLAN": string }>(`EXPLAIN ${options} ${text}`, parameters)
        return plan.map((line) => line["QUERY PLAN"]).join("\n")
      })
      const after = { createdAt: start + 3_000, id: "req_8" }
      const cases: ReadonlyArray<readonly [index: RegExp, query: Partial<RequestQuery>]> = [
        [/_pkey/, {}],
        ...Object.values(alone).map((query) => [/_pkey|_expr_created_at_id_idx/, query] as const),
        [/_expr_created_at_id_idx/, { modelId: "mdl_nobody" }],
        [/_expr_created_at_id_idx/, { apiKeyId: "key_nobody" }],
        [/_expr_created_at_id_idx/, { modelId: "mdl_1", apiKeyId: "key_nobody", to: start + 2_000 }],
        [/_expr_created_at_id_idx/, { status: "success" }],
        [/_expr_created_at_id_idx/, { status: "client_error" }],
        [/_expr_created_at_id_idx/, { status: "server_error" }],
        [/_expr_created_at_id_idx/, { apiKeyId: "key_1", status: "server_error" }],
        [/_expr_created_at_id_idx/, { modelId: "mdl_1", status: "server_error", from: start, to: start + 2_000 }],
        [/_expr_created_at_id_idx/, { modelId: "mdl_1", apiKeyId: "key_1", status: "client_error" }]
      ]
      for (const [index, query] of cases) {
        const plan = yield* explain(listStatement(sql, orgId, { limit: 50, after, ...query }))
        assert.notInclude(plan, "Seq Scan", plan)
        assert.notMatch(plan, /-> +(Incremental )?Sort/, plan)
        // Only the status class may filter rows of a range. The row-level condition is allowed too: it removes nothing,
        // because the range belongs to the organization.
        const wall = /COALESCE\(\(?(requests\S*\.)?org_id = current_setting\('seatrial.org_id'::text, true\)\)?, false\)/g
        const other = plan.replaceAll(wall, "").replaceAll(/One-Time Filter: .*/g, "")
        assert.notMatch(other, /Filter: .*(model_id|api_key_id|created_at|org_id)/, plan)
        assert.notInclude(plan, `requests_${new Date().toISOString().slice(0, 7).replace("-", "_")}`, plan)
        assert.match(plan, index, plan)
      }
      const one = rows.at(-1)
      if (one === undefined) return assert.fail()
      // Each key selects its partition at execution time.
      for (const statement of [findStatement, findReceiptStatement]) {
        const lookUp = yield* explain(statement(sql, [{ orgId, id: one.id }]), "(ANALYZE, TIMING OFF)")
        assert.notInclude(lookUp, "Seq Scan", lookUp)
        assert.match(lookUp, /_2026_02(_pkey)? on .*loops=1/, lookUp)
        for (const line of lookUp.split("\n")) {
          if (/ on (requests|receipts)_/.test(line) && !line.includes("_2026_02")) assert.include(line, "never executed", lookUp)
        }
      }
      assert.isTrue(Option.isSome(yield* requests.find(orgId, one.id)))
    }).pipe(Effect.scoped)
  )

  it.effect("each of several concurrent lookups gets its own record, and a canceled one does not affect the others", () =>
    Effect.gen(function* () {
      const requests = yield* Requests
      const { caller } = yield* makeCaller("grouped")
      const other = yield* makeCaller("grouped-other")
      const mine = yield* fill(caller.orgId, 300)
      const theirs = yield* fill(other.caller.orgId, 300)
      const all = [...mine, ...theirs]
      const left = yield* Effect.forEach(mine.slice(0, 150), ({ id }) => Effect.forkChild(requests.find(caller.orgId, id)))
      const batch = yield* Effect.forkChild(
        Effect.forEach(all, ({ id }) => Effect.zip(requests.find(caller.orgId, id), requests.find(other.caller.orgId, id), { concurrent: true }), {
          concurrency: "unbounded"
        })
      )
      yield* Effect.yieldNow
      yield* Fiber.interruptAll(left)
      const ids = (yield* Fiber.join(batch)).map((pair) => pair.map((record) => Option.getOrNull(record)?.id ?? null))
      assert.deepStrictEqual(
        ids,
        all.map(({ id, org_id }) => (org_id === caller.orgId ? [id, null] : [null, id]))
      )
    })
  )

  it.effect("an invalid ID and an ID of another organization are not found", () =>
    Effect.gen(function* () {
      const requests = yield* Requests
      const { caller } = yield* makeCaller("isolated")
      const other = yield* makeCaller("isolated-other")
      const rows = yield* fill(caller.orgId, 100)
      for (const id of ["", "req_", "req_zzzz", `dep_${"0".repeat(26)}`, `req_${"7".repeat(26)}`, "x".repeat(64)]) {
        assert.isTrue(Option.isNone(yield* requests.find(caller.orgId, id)), id)
        assert.isTrue(Option.isNone(yield* requests.findReceipt(caller.orgId, id)), id)
      }
      for (const { id } of rows) assert.isTrue(Option.isNone(yield* requests.find(other.caller.orgId, id)))
      assert.deepStrictEqual(yield* requests.list(other.caller.orgId, { limit: 200, after: null }), { items: [], next: null })
    })
  )
})
