import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database, Metering } from "../src/index.ts"
import { makeCaller, makeServing } from "../src/testing.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerStore } from "./stage.ts"

layer(layerStore, { excludeTestServices: true })("the migration that begins the sums of costs", (it) => {
  it.effect("counts what was recorded before it, of months that were dropped too, and the trigger goes on from there", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const { caller } = yield* makeCaller("backfill")
      const served = yield* makeServing(caller, "k")
      const { keyId, orgId } = caller
      // Each costs 700 micro-dollars.
      const record = Effect.fnUntraced(function* (millis?: number) {
        yield* metering.end(endOf(yield* startOf(caller, served, millis)))
      })
      yield* Effect.forEach([undefined, undefined, Date.UTC(2001, 5, 5)], record)
      yield* sql`UPDATE requests SET cost_micros = 300 WHERE id = (SELECT max(id) FROM requests WHERE org_id = ${orgId})`
      yield* sql`
        INSERT INTO usage_days (org_id, day, model_id, model, api_key_id, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros)
        VALUES (${orgId}, '2000-01-01', NULL, NULL, ${keyId}, 1, 0, 0, 0, 0, 0, 50)`
      const counted = sql`
        SELECT api_key_id AS key, sum(total_micros)::int AS total, sum(month_micros)::int AS month, sum(day_micros)::int AS day, max(largest_micros)::int AS largest
        FROM spend_sums WHERE org_id = ${orgId} GROUP BY 1 ORDER BY 1`

      yield* sql`DROP TRIGGER count_inserted_spend ON requests`
      yield* sql`DROP TRIGGER count_updated_spend ON requests`
      yield* sql`DROP FUNCTION count_spend()`
      yield* sql`DROP TABLE spend_sums`
      yield* sql`DELETE FROM migrations WHERE migration_id = 45`
      assert.deepStrictEqual(yield* Database.migrate, [[45, "spend_sums"]])
      const sums = { total: 700 + 700 + 300 + 50, month: 1_000, day: 1_000, largest: 700 }
      assert.deepStrictEqual<unknown>(yield* counted, [
        { key: "", ...sums },
        { key: keyId, ...sums }
      ])

      yield* record()
      const later = { total: sums.total + 700, month: 1_700, day: 1_700, largest: 700 }
      assert.deepStrictEqual<unknown>(yield* counted, [
        { key: "", ...later },
        { key: keyId, ...later }
      ])
    })
  )
})
