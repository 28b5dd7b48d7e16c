import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Metering } from "../src/index.ts"
import { Partitions } from "../src/Partitions.ts"
import { retireOldMonths } from "../src/Retention.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerDatabase, layerStore, pause } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

/** The name of the partition this number of months before the database's current one. */
const monthBefore = (parent: "requests" | "receipts", months: number) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql<{
      readonly name: string
    }>`SELECT ${parent} || to_char(date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => ${months}), '_YYYY_MM') AS name`
    return row?.name ?? ""
  })

const makeMonths = (from: number) =>
  Effect.flatMap(
    PgClient.PgClient,
    (sql) => sql`
      SELECT ensure_request_partitions(date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - make_interval(months => ${from}), now() + interval '2 months')`
  )

const attached = (parent: "requests" | "receipts") =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const rows = yield* sql<{
      readonly name: string
    }>`SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ${parent}::regclass ORDER BY 1`
    return rows.map(({ name }) => name)
  })

const retiredTables = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ readonly name: string }>`SELECT relname::text AS name FROM pg_class WHERE relname LIKE 'retired_re%\_2___\___\_%' AND relkind = 'r'`
  return rows.map(({ name }) => name)
})

const ageRetired = (interval: string) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql`UPDATE retired_months SET retired_at = retired_at - ${interval}::interval`)

layer(layerStore, { excludeTestServices: true })("retention", (it) => {
  it.effect("a process whose clock is 200 days ahead detaches and drops nothing that is current by the database's clock", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.now() + 200 * 86_400_000)
      const sql = yield* PgClient.PgClient
      yield* makeMonths(2)
      const before = yield* attached("requests")
      assert.include(before, yield* monthBefore("requests", -2))
      const { dropped, retired } = yield* retireOldMonths(sql, { requests: 2, receipts: 2 })
      assert.deepStrictEqual<unknown>({ dropped, retired }, { dropped: [], retired: [] })
      assert.deepStrictEqual(yield* attached("requests"), before)
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("no setting detaches the current or the previous month, and receipts stay at least as long as their requests", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* makeMonths(4)
      // As a faulty program, or an attacker with a program's privileges, would call it.
      for (const keep of [0, -1_000_000]) while ((yield* sql`SELECT 1 FROM retire_old_month('receipts', ${keep}) AS name WHERE name IS NOT NULL`).length > 0);
      assert.include(yield* attached("receipts"), yield* monthBefore("receipts", 4))
      for (const parent of ["requests", "receipts"] as const) {
        for (const keep of [0, -1_000_000]) while ((yield* sql`SELECT 1 FROM retire_old_month(${parent}, ${keep}) AS name WHERE name IS NOT NULL`).length > 0);
        const months = yield* attached(parent)
        for (const months_ago of [-1, 0, 1]) assert.include(months, yield* monthBefore(parent, months_ago))
        assert.notInclude(months, yield* monthBefore(parent, 2))
      }
    })
  )

  it.effect("a month is detached immediately, dropped a day later by any process, and can be restored in between", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* makeMonths(3)
      yield* ageRetired("2 days")
      yield* retireOldMonths(sql, { requests: 3, receipts: 3 })
      assert.deepStrictEqual(yield* retiredTables, [])
      const name = yield* monthBefore("requests", 3)
      const { caller } = yield* makeCaller("retention")
      const serving = yield* makeServing(caller, "a", "one")
      const metering = yield* Metering
      const start = yield* startOf(caller, serving, Date.parse(`${name.slice(-7).replace("_", "-")}-05T00:00:00Z`))
      yield* beginRequest(metering, start)
      yield* metering.end(endOf(start))
      const counts = Effect.map(
        sql`SELECT (SELECT count(*) FROM requests)::int AS requests, (SELECT count(*) FROM receipts)::int AS receipts,
          (SELECT coalesce(sum(requests), 0) FROM usage_days)::int AS sums, (SELECT coalesce(sum(receipts), 0) FROM dropped_receipts)::int AS "receiptSums"`,
        ([row]) => row
      )
      const present = { requests: 1, receipts: 1, sums: 0, receiptSums: 0 }
      const gone = { requests: 0, receipts: 0, sums: 1, receiptSums: 1 }
      assert.deepStrictEqual<unknown>(yield* counts, present)
      assert.include((yield* retireOldMonths(sql, { requests: 1, receipts: 1 })).retired, name)
      assert.deepStrictEqual<unknown>(yield* counts, gone)
      assert.lengthOf(yield* retiredTables, 4)

      // Restored, with its sums.
      for (const { id } of yield* sql<{ readonly id: string }>`SELECT id FROM retired_months`) yield* sql`SELECT restore_retired_month(${id})`
      assert.deepStrictEqual<unknown>(yield* counts, present)
      assert.include(yield* attached("requests"), name)
      assert.lengthOf(yield* sql`SELECT FROM usage_days`, 0)

      yield* retireOldMonths(sql, { requests: 1, receipts: 1 })
      yield* ageRetired("23 hours")
      assert.deepStrictEqual((yield* retireOldMonths(sql, { requests: 1, receipts: 1 })).dropped, [])
      yield* ageRetired("2 hours")
      assert.lengthOf((yield* retireOldMonths(sql, { requests: 1, receipts: 1 })).dropped, 4)
      assert.deepStrictEqual(yield* retiredTables, [])
      assert.deepStrictEqual<unknown>(yield* counts, gone)
    })
  )

  it.effect("a month that was detached while the clock was wrong is not dropped while it is the current or the previous one", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`
        INSERT INTO retired_months (parent, month, retired_at) SELECT 'requests', date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month', now() - interval '9 days'`
      assert.deepStrictEqual((yield* retireOldMonths(sql, { requests: 1, receipts: 1 })).dropped, [])
      yield* sql`DELETE FROM retired_months`
    })
  )

  it.effect("readers of a month continue while it is retired: the detachment gives up, and other readers are not blocked", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* makeMonths(2)
      const reading = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const reader = yield* Effect.gen(function* () {
        yield* sql`SELECT count(*) FROM requests`
        yield* Deferred.succeed(reading, undefined)
        yield* Deferred.await(release)
        return yield* sql`SELECT count(*) FROM requests`
      }).pipe(sql.withTransaction, Effect.forkScoped)
      yield* Deferred.await(reading)
      const retiring = yield* Effect.forkScoped(Effect.exit(retireOldMonths(sql, { requests: 1, receipts: 1 })))
      const reads = yield* Effect.forkScoped(Effect.forever(sql`SELECT count(*) FROM requests`))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(retiring)))
      assert.include(yield* attached("requests"), yield* monthBefore("requests", 2))
      assert.lengthOf(yield* sql`SELECT FROM retired_months`, 0)
      assert.isUndefined(reads.pollUnsafe())
      yield* Fiber.interrupt(reads)
      yield* Deferred.succeed(release, undefined)
      assert.lengthOf(yield* Fiber.join(reader), 1)
      assert.include((yield* retireOldMonths(sql, { requests: 1, receipts: 1 })).retired, yield* monthBefore("requests", 2))
    }).pipe(Effect.scoped)
  )
})

layer(layerDatabase)("partitions", (it) => {
  for (const days of [200, -200]) {
    it.effect(`are created ahead by the database's clock, even if the process's clock is wrong (${days} days off)`, () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.now() + days * 86_400_000)
        const sql = yield* PgClient.PgClient
        yield* Effect.gen(function* () {
          yield* Partitions
          const next = [yield* monthBefore("requests", -1), yield* monthBefore("receipts", -2)]
          assert.include(yield* attached("requests"), next[0])
          for (const name of next) yield* sql`DROP TABLE ${sql(name)}`
          yield* TestClock.adjust("1 hour")
          while (!(yield* attached("receipts")).includes(next[1] ?? "")) yield* pause
          assert.include(yield* attached("requests"), next[0])
          assert.notInclude(yield* attached("requests"), yield* monthBefore("requests", -3))
        }).pipe(Effect.provide(Partitions.layerSql))
      })
    )
  }
})
