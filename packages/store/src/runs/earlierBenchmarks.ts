import type { PgClient } from "@effect/sql-pg"
import { Benchmark, type BenchmarkKey, type OrgId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"

/** How many of the newest benchmarks are read. */
const maxBenchmarks = 20

/**
 * The organization's benchmarks of that key. Benchmarks of other organizations must not be visible, not even through a
 * comparison.
 */
export const earlierBenchmarks = (sql: PgClient.PgClient) => {
  const decode = Schema.decodeUnknownOption(Schema.Struct({ benchmark: Benchmark }))
  return Effect.fn("Runs.earlierBenchmarks")(function* (orgId: OrgId, key: BenchmarkKey) {
    const rows = yield* Effect.orDie(sql`
      SELECT benchmark FROM revisions
      WHERE org_id = ${orgId} AND hf_revision = ${key.adapter_commit ?? key.commit} AND benchmark IS NOT NULL AND benchmark -> 'key' = ${sql.json(key)}
      ORDER BY created_at DESC LIMIT ${maxBenchmarks}`)
    return rows.flatMap((row) => Option.toArray(Option.map(decode(row), ({ benchmark }) => benchmark)))
  })
}
