import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { Statement } from "effect/sql"
import { BenchError } from "./Program.ts"

interface PlanNode {
  readonly "Node Type": string
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Index Recheck"?: number
  readonly Plans?: ReadonlyArray<PlanNode>
}
const PlanNode = Schema.Struct({
  "Node Type": Schema.String,
  "Rows Removed by Filter": Schema.optionalKey(Schema.Finite),
  "Rows Removed by Index Recheck": Schema.optionalKey(Schema.Finite),
  Plans: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<PlanNode> => PlanNode)))
})
const decodePlan = Schema.decodeUnknownSync(Schema.Tuple([Schema.Struct({ Plan: PlanNode })]))

/** Allowed plan nodes of a page: index ranges, appended or merged, and joins of the rows of the page. */
const allowed = new Set(["Index Scan", "Append", "Merge Append", "Limit", "Subquery Scan", "Result", "WindowAgg", "Aggregate"])

const nodesOf = (node: PlanNode): ReadonlyArray<PlanNode> => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

const literal = (value: unknown): string =>
  value instanceof Date ? `'${value.toISOString()}'` : typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`

let prepared = 0

/** Runs a statement like the server, prepared and with the generic plan. Fails if the plan sorts, scans a table or discards more than a page. */
export const checkPlan = Effect.fnUntraced(function* (sql: PgClient.PgClient, statement: Statement.Statement<object>, page: number) {
  const [text, parameters] = statement.compile()
  const name = `bench_${++prepared}`
  const [row] = yield* Effect.andThen(
    sql.unsafe(`PREPARE ${name} AS ${text}`).unprepared,
    sql.unsafe<{ readonly "QUERY PLAN": unknown }>(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${name} (${parameters.map(literal).join(", ")})`).unprepared
  ).pipe(sql.withTransaction)
  const nodes = nodesOf(decodePlan(row?.["QUERY PLAN"])[0].Plan)
  const foreign = nodes.find((node) => !allowed.has(node["Node Type"]))
  if (foreign !== undefined) return yield* new BenchError({ message: `The plan has a ${foreign["Node Type"]}: ${text}` })
  const discarded = nodes.reduce((sum, node) => sum + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0), 0)
  if (discarded > page) return yield* new BenchError({ message: `The plan discards ${discarded} rows: ${text}` })
  return discarded
})
