import { PgClient, PgConnection } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { Prices, Usage } from "@seatrial/domain"
import { Effect, Layer, Option, Queue, type Redacted, Schema } from "effect"
import { Allowances, ApiKeys, Billing, type Caller, Metering, Organizations, type Spending } from "../src/index.ts"
import { SpendNotice } from "../src/spending/statements.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerStore, soon } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

/** One micro-dollar for each output token. */
const prices: Prices = {
  input_micros_per_mtok: "0",
  output_micros_per_mtok: "1000000",
  cache_read_micros_per_mtok: "0",
  cache_write_micros_per_mtok: "0"
}
const writes = (output_tokens: number): Usage => ({ input_tokens: 0, output_tokens, cache_read_tokens: null, cache_write_tokens: null })

/** A customer with 5,000,000 micro-dollars, and the functions to spend them. */
const setUp = Effect.fnUntraced(function* (slug: string) {
  const metering = yield* Metering
  const { check } = yield* Allowances
  const keys = yield* ApiKeys
  const owner = yield* makeCaller(`${slug}-owner`)
  const served = yield* makeServing(owner.caller, "k")
  const { caller, secret, user } = yield* makeCaller(slug)
  const spend = Effect.fnUntraced(function* (micros: number, by: Pick<Caller, "keyId" | "orgId"> = caller) {
    const start = yield* startOf({ ...caller, ...by }, served)
    yield* metering.end(endOf(start, { usage: writes(micros), receipt: { prices, hfRevision: "c".repeat(40), engineVersion: "reference-1" } }))
    return start
  })
  const callerNow = (of = secret) => Effect.map(keys.authenticate(of), Option.getOrThrow)
  const mayCost = Effect.fnUntraced(function* (spending: Spending = "tokens", by: Redacted.Redacted<string> = secret, atOnce = 64) {
    const answer = check(yield* callerNow(by), spending, atOnce)
    const refused = Effect.isEffect(answer) ? yield* answer : answer
    return refused === null ? "allowed" : refused === "suspended" ? refused : `${refused.of} ${refused.kind}`
  })
  const addKey = keys.create({ orgId: caller.orgId, userId: user.id, name: "second", scopes: ["inference:write"] })
  return {
    billing: yield* Billing,
    caller,
    orgId: caller.orgId,
    secret,
    spend,
    mayCost,
    callerNow,
    addKey,
    served,
    metering,
    organizations: yield* Organizations
  }
})

layer(Layer.mergeAll(Allowances.layerSql, Billing.layerSql).pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })("Allowances", (it) => {
  it.effect("an invoiced organization without limits needs no lookup and may spend any amount", () =>
    Effect.gen(function* () {
      const { caller, mayCost, spend } = yield* setUp("invoiced")
      assert.isFalse(caller.spendLimited)
      yield* spend(50_000_000)
      assert.strictEqual(yield* mayCost(), "allowed")
    })
  )

  it.effect("a prepaid organization is served until its balance is used up, and again after a purchase or a credit", () =>
    Effect.gen(function* () {
      const { billing, callerNow, mayCost, orgId, organizations, spend } = yield* setUp("prepaid")
      yield* billing.setPrepaid(orgId, true)
      yield* soon(Effect.map(callerNow(), ({ spendLimited }) => spendLimited))
      yield* spend(4_999_999)
      assert.strictEqual(yield* mayCost(), "allowed")
      yield* spend(1)
      assert.strictEqual(yield* mayCost(), "organization balance")
      assert.strictEqual(yield* mayCost("nothing"), "organization balance")
      assert.strictEqual(Option.getOrThrow(yield* billing.usedUp(orgId)).kind, "balance")
      yield* organizations.recordPurchase({ orgId, micros: 10n })
      yield* soon(Effect.map(mayCost(), (answer) => answer === "allowed"))
      yield* spend(20)
      assert.strictEqual(yield* mayCost(), "organization balance")
      yield* billing.grantCredit({ orgId, micros: 11n, note: null })
      yield* soon(Effect.map(mayCost(), (answer) => answer === "allowed"))
      assert.isTrue(Option.isNone(yield* billing.usedUp(orgId)))
    })
  )

  it.effect("a limit of an organization stops spending by all of its keys until the limit is raised", () =>
    Effect.gen(function* () {
      const { addKey, billing, callerNow, mayCost, orgId, spend } = yield* setUp("limited")
      const second = yield* addKey
      yield* spend(600, { orgId, keyId: second.key.id })
      yield* billing.setSpendLimit(orgId, { month: 1_000n })
      yield* soon(Effect.map(callerNow(), ({ spendLimited }) => spendLimited))
      yield* spend(399)
      assert.strictEqual(yield* mayCost(), "allowed")
      yield* spend(5)
      assert.deepStrictEqual(
        [yield* mayCost(), yield* mayCost("tokens", second.secret), yield* mayCost("gpuTime"), yield* mayCost("nothing")],
        ["organization month", "organization month", "organization month", "allowed"]
      )
      yield* billing.setSpendLimit(orgId, { month: 2_000n, day: 1_004n })
      yield* soon(Effect.map(mayCost(), (answer) => answer === "organization day"))
      yield* billing.setSpendLimit(orgId, { day: null })
      yield* soon(Effect.map(mayCost(), (answer) => answer === "allowed"))
    })
  )

  it.effect("a cost far above all earlier ones counts at once, and once, although its sum is announced later", () =>
    Effect.gen(function* () {
      const { check } = yield* Allowances
      const { billing, callerNow, mayCost, orgId, spend } = yield* setUp("unequal")
      yield* spend(10)
      yield* billing.setSpendLimit(orgId, { month: 3_000_000n })
      yield* soon(Effect.map(callerNow(), ({ spendLimited }) => spendLimited))
      const caller = yield* callerNow()
      const answerOf = (spending: Spending) => check(caller, spending, 0)
      // The first check reads the account into memory.
      yield* soon(Effect.map(mayCost(), () => answerOf("tokens") === null))
      // This cost is announced immediately, so that the next ones wait.
      yield* spend(1)
      yield* spend(20)
      // Without a query, because enough is left.
      assert.isNull(answerOf("tokens"))
      yield* spend(2_000_000)
      assert.isNull(answerOf("nothing"))
      // Twice the cost would be above the limit.
      assert.strictEqual(yield* mayCost("tokens", undefined, 0), "allowed")
      yield* soon(Effect.sync(() => answerOf("tokens") === null && answerOf("gpuTime") === null))
      yield* spend(1)
      yield* spend(1_500_000)
      // Queries would show the sums of the database, so the answer is needed at the time of the end.
      const answers = [answerOf("tokens"), answerOf("gpuTime")]
      for (const answer of answers) {
        const refused = Effect.isEffect(answer) ? yield* answer : answer
        assert.isTrue(refused !== null && refused !== "suspended" && refused.kind === "month" && refused.spent === 3_500_032n)
      }
      assert.isNull(answerOf("nothing"))
    })
  )

  it.effect("a limit of a key stops that key's requests to models with rates, and nothing else", () =>
    Effect.gen(function* () {
      const { addKey, billing, caller, callerNow, mayCost, orgId, secret, spend } = yield* setUp("keyed")
      const second = yield* addKey
      yield* spend(10)
      yield* billing.setKeySpendLimit(orgId, caller.keyId, { day: 10n })
      yield* soon(Effect.map(callerNow(), ({ spendLimited }) => spendLimited))
      yield* soon(Effect.map(mayCost(), (answer) => answer === "key day"))
      assert.deepStrictEqual(
        [yield* mayCost("gpuTime"), yield* mayCost("tokens", second.secret), yield* mayCost("tokens", secret)],
        ["allowed", "allowed", "key day"]
      )
      const none = yield* billing.setKeySpendLimit((yield* setUp("stranger")).orgId, caller.keyId, { day: null })
      assert.isTrue(Option.isNone(none))
    })
  )

  it.effect("suspended billing stops requests that cost money, and nothing else", () =>
    Effect.gen(function* () {
      const { billing, mayCost, orgId } = yield* setUp("suspended")
      yield* billing.setSuspended(orgId, true)
      yield* soon(Effect.map(mayCost(), (answer) => answer === "suspended"))
      assert.deepStrictEqual([yield* mayCost("gpuTime"), yield* mayCost("nothing")], ["suspended", "allowed"])
      yield* billing.setSuspended(orgId, false)
      yield* soon(Effect.map(mayCost(), (answer) => answer === "allowed"))
    })
  )

  it.effect("sums equal the records, even if a request ends twice: in one batch, or by a sweep and later by its gateway", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { billing, caller, metering, orgId, served, spend } = yield* setUp("exact")
      yield* Effect.forEach(Array.from({ length: 200 }), (_, index) => spend(index + 1), { concurrency: "unbounded" })
      const start = yield* startOf(caller, served)
      yield* beginRequest(metering, start)
      const end = endOf(start, { usage: writes(7), receipt: { prices, hfRevision: "c".repeat(40), engineVersion: "reference-1" } })
      yield* Effect.all([metering.end(end), metering.end(end)], { concurrency: "unbounded" })
      yield* metering.end(end)
      yield* sql`UPDATE requests SET cost_micros = 9 WHERE org_id = ${orgId} AND id = ${start.id}`
      const sums = yield* sql`
        SELECT api_key_id AS key, sum(total_micros)::text AS total, sum(month_micros)::text AS month, sum(day_micros)::text AS day, max(largest_micros)::text AS largest
        FROM spend_sums WHERE org_id = ${orgId} GROUP BY 1 ORDER BY 1`
      const expected = { total: "20109", month: "20109", day: "20109", largest: "200" }
      assert.deepStrictEqual<unknown>(sums, [
        { key: "", ...expected },
        { key: caller.keyId, ...expected }
      ])
      // An organization without a limit sees what it has spent, too.
      assert.deepStrictEqual(yield* billing.spending(orgId), {
        spent: [
          { period: "day", requests: 20_109n, gpuTime: 0n },
          { period: "month", requests: 20_109n, gpuTime: 0n }
        ],
        allowances: []
      })
    })
  )

  it.effect("earlier spending counts when the organization is limited, exactly and per key, even while requests end", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { addKey, billing, caller, orgId, spend } = yield* setUp("earlier")
      const second = yield* addKey
      yield* Effect.forEach([100, 200, 300], (micros) => spend(micros), { discard: true })
      yield* spend(40, { orgId, keyId: second.key.id })
      // As if these requests had ended before the trigger existed, and the month of others had been dropped.
      yield* sql`DELETE FROM spend_sums WHERE org_id = ${orgId}`
      yield* sql`
        INSERT INTO usage_days (org_id, day, api_key_id, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros)
        VALUES (${orgId}, '2020-01-01', ${caller.keyId}, 1, 0, 0, 0, 0, 0, 7)`
      yield* spend(1)
      const ends = Effect.forEach(Array.from({ length: 100 }), () => spend(10), { concurrency: 10, discard: true })
      const limits = Effect.gen(function* () {
        yield* billing.setSpendLimit(orgId, { month: 10_000n })
        yield* billing.setPrepaid(orgId, true)
        yield* billing.setKeySpendLimit(orgId, second.key.id, { day: 100n })
      })
      yield* Effect.all([ends, limits], { concurrency: "unbounded" })
      yield* spend(2)
      assert.deepStrictEqual(
        (yield* billing.allowances(orgId)).map(({ keyId, kind, spent }) => [keyId, kind, spent]),
        [
          [null, "balance", 1_650n],
          [null, "month", 1_643n],
          [second.key.id, "day", 40n]
        ]
      )
    })
  )

  it.effect("a record's transaction announces nothing: transactions that notify would wait for each other", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { billing, orgId, spend } = yield* setUp("quiet")
      const start = yield* spend(1)
      yield* billing.setSpendLimit(orgId, { month: 1_000n })
      const connection = yield* PgConnection.make(sql.config)
      const notifications = yield* connection.listen("spend")
      yield* sql`UPDATE requests SET cost_micros = 2 WHERE org_id = ${orgId} AND id = ${start.id}`
      yield* sql`SELECT pg_notify('spend', ${orgId})`
      // The gateway may still announce the cost of 1 that it has committed.
      const announced: Array<string> = []
      while (!announced.includes(orgId)) announced.push((yield* Queue.take(notifications)).payload)
      for (const payload of announced) {
        if (!payload.includes(`"${orgId}"`)) continue
        assert.notStrictEqual((yield* Schema.decodeUnknownEffect(SpendNotice)(payload)).total_micros, 2n)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("a gateway announces the sum of each shard that it has committed", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { billing, orgId, spend } = yield* setUp("announced")
      yield* billing.setSpendLimit(orgId, { month: 1_000_000n })
      const connection = yield* PgConnection.make(sql.config)
      const notifications = yield* connection.listen("spend")
      yield* Effect.forEach(Array.from({ length: 50 }), () => spend(10), { concurrency: 10, discard: true })
      const totals = new Map<number, bigint>()
      while ([...totals.values()].reduce((sum, total) => sum + total, 0n) < 500n) {
        const { payload } = yield* Queue.take(notifications)
        if (!payload.includes(`"${orgId}"`)) continue
        const { key, shard, total_micros } = yield* Schema.decodeUnknownEffect(SpendNotice)(payload)
        if (key === "") totals.set(shard, total_micros)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("each percentage of a limit is reported once, with its limit", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { billing, caller, callerNow, mayCost, orgId, spend } = yield* setUp("alerted")
      yield* billing.setSpendLimit(orgId, { day: 100n })
      yield* billing.setKeySpendLimit(orgId, caller.keyId, { month: 1_000n })
      yield* soon(Effect.map(callerNow(), ({ spendLimited }) => spendLimited))
      yield* mayCost()
      const alerts = Effect.map(
        sql<{
          key: string
          allowance: string
          percent: number
        }>`SELECT api_key_id AS key, allowance, percent FROM spend_alerts WHERE org_id = ${orgId} ORDER BY 2, 3`,
        (rows) => rows.map(({ allowance, key, percent }) => `${key === "" ? "organization" : "key"} ${allowance} ${percent}`)
      )
      yield* spend(49)
      yield* spend(1)
      // A request reads the account if the notification of the limits came after the first reading.
      const reported = (count: number) => soon(Effect.map(Effect.andThen(mayCost(), alerts), ({ length }) => length === count))
      yield* reported(1)
      yield* spend(450)
      yield* reported(4)
      assert.deepStrictEqual(yield* alerts, ["organization day 50", "organization day 80", "organization day 100", "key month 50"])
      assert.deepStrictEqual(
        (yield* billing.allowances(orgId)).map(({ keyId, kind, limit, reachedPercent, spent }) => [keyId, kind, limit, spent, reachedPercent]),
        [
          [null, "day", 100n, 500n, 100],
          [caller.keyId, "month", 1_000n, 500n, 50]
        ]
      )
    })
  )
})
