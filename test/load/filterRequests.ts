import type { RequestQuery } from "@seatrial/store"
import { listStatement } from "@seatrial/store/testing"
import { Effect } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { figureOf, show, table } from "./figures.ts"
import { keyIdSql, modelIdSql } from "./makeRequests.ts"
import { checkPlan } from "./planCheck.ts"

type Filters = Omit<RequestQuery, "limit" | "after">

const limit = 50
const samples = 100

/** Every combination of the filters. */
const setsOf = (filters: Required<Filters>): ReadonlyArray<Filters> => {
  const parts = Object.entries(filters)
  return Array.from({ length: 2 ** parts.length }, (_, chosen) => Object.fromEntries(parts.filter((_part, bit) => chosen & (1 << bit))))
}

const labelOf = (filters: Filters): string => Object.keys(filters).join(" ") || "none"

const percentile = (sorted: ReadonlyArray<number>, share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export const filterRequests: Benchmark = {
  name: "filters",
  title: "Filters of the request list",
  measure: Effect.fnUntraced(function* ({ requests }) {
    const { from: begin, lab, organizations, rows, until } = yield* requests
    const middle = (begin + until) / 2
    const idsOf = Effect.fnUntraced(function* (org: number, model: number, key: number) {
      const [row] = yield* lab.sql.unsafe<{ readonly modelId: string; readonly apiKeyId: string }>(
        `SELECT ${modelIdSql(String(org), String(model))} AS "modelId", ${keyIdSql(String(org), String(key))} AS "apiKeyId"`
      )
      return row ?? { modelId: "", apiKeyId: "" }
    })
    const window = { from: begin + (until - begin) / 10, to: until - (until - begin) / 10 }
    const runs: Array<{
      readonly what: string
      readonly filters: Filters
      readonly times: ReadonlyArray<number>
      readonly found: boolean
      readonly discarded: number
    }> = []
    for (const [who, orgId, org] of [
      ["half of all", lab.orgId, 0],
      ["the fewest", lab.small.orgId, organizations - 1]
    ] as const) {
      const cases: ReadonlyArray<readonly [string, Required<Filters>]> = [
        ["many", { ...(yield* idsOf(org, 0, 0)), status: "success", ...window }],
        ["few", { ...(yield* idsOf(org, 1, 2)), status: "server_error", ...window }],
        // Each of these filters, or each pair of them, matches many rows.
        ["model 7 and key 3", { ...(yield* idsOf(org, 7, 3)), status: "client_error", ...window }],
        ["model 6 and key 1 and 5xx", { ...(yield* idsOf(org, 6, 1)), status: "server_error", ...window }],
        ["no such model or key", { modelId: "mdl_nobody", apiKeyId: "key_nobody", status: "success", from: until, to: until + 1 }]
      ]
      for (const [what, filters] of cases) {
        for (const set of setsOf(filters)) {
          for (const after of [null, { createdAt: middle, id: "req_8" }]) {
            const query: RequestQuery = { ...set, limit, after }
            const discarded = yield* checkPlan(lab.reads, listStatement(lab.reads, orgId, query), limit)
            const times: Array<number> = []
            let hasMatches = false
            for (let sample = 0; sample < samples; sample++) {
              const at = performance.now()
              const page = yield* lab.listJson(orgId, query)
              times.push(performance.now() - at)
              hasMatches = page.data !== "[]"
            }
            runs.push({
              what: `${who}: ${what}${after === null ? "" : ", deep"}`,
              filters: set,
              times: times.sort((a, b) => a - b),
              found: hasMatches,
              discarded
            })
          }
        }
      }
    }
    const bySet = Map.groupBy(runs, ({ filters }) => labelOf(filters))
    const worst = (of: ReadonlyArray<(typeof runs)[number]>) => of.toSorted((a, b) => percentile(b.times, 0.99) - percentile(a.times, 0.99))[0]
    const lines = [...bySet].map(([label, of]) => [
      label,
      String(of.length),
      String(of.filter(({ found }) => !found).length),
      show(figureOf(of.map(({ times }) => percentile(times, 0.5))), 2),
      show(figureOf(of.map(({ times }) => percentile(times, 0.99))), 2),
      worst(of)?.what ?? ""
    ])
    const all = runs.flatMap(({ times }) => times).sort((a, b) => a - b)
    return `Every set of the filters \`model_id\`, \`api_key_id\`, \`status\`, \`from\` and \`to\` over ${rows.toLocaleString("en-US")} requests of ${organizations} organizations: the one with half of
them and the one with the fewest; values that match many, few and no rows, and values that match many each and nothing together; the first page and one in the middle. Each of
${runs.length} cases ${samples} times, one after the other, from the store's own statement to its JSON text; limit ${limit}. Over all of them p50 is ${percentile(all, 0.5).toFixed(2)} ms and
p99 ${percentile(all, 0.99).toFixed(2)} ms. The plan of each was checked as it ran: index ranges only, no sequential scan, no sort, and at most ${Math.max(...runs.map(({ discarded }) => discarded))} rows
read and discarded (a figure is the median of the cases, with the lowest and the highest).

${table(["filters", "cases", "of which empty", "p50 ms", "p99 ms", "slowest case"], lines)}`
  })
}
