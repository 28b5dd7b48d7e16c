import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { costMicros, Ids, type ModelId, type Prices, Receipt, RequestId, RequestRecord, type RevisionId, type Usage } from "@seatrial/domain"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { groupCommit } from "../src/GroupCommit.ts"
import { type Caller, Metering, type RequestEnd, type RequestStart, Requests } from "../src/index.ts"
import { layerStore, makeCaller, makeServing } from "./stage.ts"

const prices: Prices = {
  input_micros_per_mtok: "100000",
  output_micros_per_mtok: "300000",
  cache_read_micros_per_mtok: "10000",
  cache_write_micros_per_mtok: "0"
}
const usage: Usage = { input_tokens: 1_000, output_tokens: 2_000, cache_read_tokens: null, cache_write_tokens: 3 }

interface Served {
  readonly modelId: ModelId
  readonly model: string
  readonly revisionId: RevisionId
}

const startOf = Effect.fnUntraced(function* (caller: Caller, served: Served, millis?: number) {
  const ids = yield* Ids
  const start: RequestStart = {
    id: yield* ids.make(RequestId, millis),
    orgId: caller.orgId,
    keyId: caller.keyId,
    endpoint: "/v1/chat/completions",
    streamed: true,
    modelId: served.modelId,
    model: served.model,
    revisionId: served.revisionId
  }
  return start
})

const endOf = ({ id, orgId }: RequestStart, over: Partial<RequestEnd> = {}): RequestEnd => ({
  id,
  orgId,
  statusCode: 200,
  usage,
  ttftMs: 12.5,
  latencyMs: 250.25,
  finishReason: "stop",
  error: null,
  note: null,
  receipt: { prices, hfRevision: "c".repeat(40), engineVersion: "reference-1" },
  ...over
})

layer(layerStore, { excludeTestServices: true })("Metering", (it) => {
  it.effect("a request is in the database when its begin and its end complete, with a receipt that adds up", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("commit")
      const served = yield* makeServing(caller, "k")
      const start = yield* startOf(caller, served)
      yield* metering.begin(start)
      const running = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.deepStrictEqual(
        [running.state, running.status_code, running.input_tokens, running.cost_micros, running.receipt_url],
        ["running", null, null, null, null]
      )
      yield* metering.checkpoint(start.id, usage)
      assert.deepStrictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, start.id)), running)
      assert.isTrue(Option.isNone(yield* requests.findReceipt(caller.orgId, start.id)))
      yield* metering.end(endOf(start, { note: "counted" }))
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual([record.state, record.cost_micros, record.ttft_ms, record.latency_ms], ["completed", "700", 12.5, 250.25])
      const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
      assert.isTrue(Schema.is(Receipt)(receipt))
      assert.deepStrictEqual(receipt.usage, usage)
      assert.deepStrictEqual(
        [receipt.cost_micros, receipt.created_at, receipt.config_revision, receipt.note, receipt.prices, receipt.verification?.checks.length],
        ["700", record.created_at, served.revisionId, "counted", prices, 2]
      )
      assert.strictEqual(record.receipt_url, `/v1/receipts/${start.id}`)
    })
  )

  it.effect("a second end changes nothing, whether it comes later or at once", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("twice")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"))
      yield* metering.begin(start)
      const other = endOf(start, { statusCode: 502, error: { code: "engine_lost", message: "m", param: null } })
      yield* Effect.all([metering.end(endOf(start)), metering.end(endOf(start)), metering.end(endOf(start))], { concurrency: "unbounded" })
      const first = yield* requests.find(caller.orgId, start.id)
      yield* metering.end(other)
      yield* metering.checkpoint(start.id, { ...usage, output_tokens: 9 })
      assert.deepStrictEqual(yield* requests.find(caller.orgId, start.id), first)
      assert.strictEqual(Option.getOrThrow(first).status_code, 200)
    })
  )

  it.effect("an end that comes while its begin is under way is not lost", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("overtake")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 200 }), () => startOf(caller, served))
      yield* Effect.forEach(
        starts,
        (start) =>
          Effect.gen(function* () {
            const begin = yield* Effect.forkChild(metering.begin(start), { startImmediately: true })
            yield* Fiber.interrupt(begin)
            yield* metering.end(endOf(start))
          }),
        { concurrency: "unbounded" }
      )
      const { items } = yield* requests.list(caller.orgId, { limit: 200, after: null })
      assert.strictEqual(items.filter(({ state }) => state === "completed").length, 200)
    })
  )

  it.effect("a refusal is one record at once, costs nothing and has no receipt; odd words in it do no harm", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const ids = yield* Ids
      const { caller } = yield* makeCaller("refuse")
      const refusal = {
        id: yield* ids.make(RequestId),
        orgId: caller.orgId,
        keyId: caller.keyId,
        endpoint: "/v1/chat/completions",
        streamed: null,
        modelId: null,
        model: null,
        statusCode: 404,
        latencyMs: 1,
        error: { code: "model_not_found", message: "no model \0\uD800", param: "model" }
      }
      yield* metering.refuse(refusal)
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, refusal.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual([record.state, record.cost_micros, record.input_tokens, record.receipt_url, record.model], ["refused", "0", null, null, null])
      assert.deepStrictEqual(record.error, { code: "model_not_found", message: "no model \uFFFD\uFFFD", param: "model" })
      assert.isTrue(Option.isNone(yield* requests.findReceipt(caller.orgId, refusal.id)))
    })
  )

  it.effect("a request that runs and is turned away by its engine becomes that refusal, once and for good", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("turned-away")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"))
      const { revisionId: _, ...named } = start
      const refuse = (statusCode: number) =>
        metering.refuse({ ...named, statusCode, latencyMs: 3, error: { code: "model_overloaded", message: "m", param: null } })
      yield* metering.begin(start)
      yield* metering.checkpoint(start.id, usage)
      yield* refuse(503)
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual(
        [record.state, record.status_code, record.input_tokens, record.output_tokens, record.cost_micros, record.error?.code, record.receipt_url],
        ["refused", 503, null, null, "0", "model_overloaded", null]
      )
      yield* refuse(400)
      yield* metering.begin(start)
      yield* metering.end(endOf(start))
      assert.deepStrictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, start.id)), record)

      const ended = yield* startOf(caller, start)
      yield* metering.begin(ended)
      yield* metering.end(endOf(ended))
      yield* metering.refuse({ ...named, id: ended.id, statusCode: 503, latencyMs: 3, error: { code: "model_overloaded", message: "m", param: null } })
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, ended.id)).state, "completed")
    })
  )

  it.effect("a row that the database refuses fails alone", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("poison")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 60 }), () => startOf(caller, served))
      yield* Effect.forEach(starts, metering.begin, { concurrency: "unbounded" })
      const exits = yield* Effect.forEach(
        starts,
        (start, index) => Effect.exit(metering.end(endOf(start, index === 17 ? { usage: { ...usage, input_tokens: 2 ** 40 } } : {}))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        exits.flatMap((exit, index) => (Exit.isFailure(exit) ? [index] : [])),
        [17]
      )
      assert.strictEqual((yield* requests.list(caller.orgId, { limit: 200, after: null })).items.length, 59)
    })
  )

  it.effect("a request in a month without a partition gets one", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("month")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"), Date.UTC(2001, 1, 3, 4, 5, 6, 789))
      yield* metering.begin(start)
      yield* metering.end(endOf(start))
      assert.strictEqual(Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id)).created_at, "2001-02-03T04:05:06.789Z")
    })
  )

  it.effect("a receipt answers the same when its request's partition has been dropped", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("dropped")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"), Date.UTC(2002, 1, 3))
      yield* metering.begin(start)
      yield* metering.end(endOf(start, { note: "counted" }))
      const receipt = yield* requests.findReceipt(caller.orgId, start.id)
      yield* sql`DROP TABLE requests_2002_02`
      assert.isTrue(Option.isNone(yield* requests.find(caller.orgId, start.id)))
      assert.isTrue(Option.isSome(receipt))
      assert.deepStrictEqual(yield* requests.findReceipt(caller.orgId, start.id), receipt)
    })
  )

  it.effect("whatever is metered reads back as the contract's records, at the domain's cost", () =>
    Effect.gen(function* () {
      const { caller } = yield* makeCaller("property")
      const served = yield* makeServing(caller, "k")
      return { caller, served }
    }).pipe(
      Effect.flatMap(({ caller, served }) =>
        Effect.gen(function* () {
          const metering = yield* Metering
          const requests = yield* Requests
          const tokens = [0, 1, 999_999, 2_000_000_000]
          const nullable = [null, ...tokens]
          for (let index = 0; index < 60; index++) {
            const random: Usage = {
              input_tokens: tokens[index % 4] ?? 0,
              output_tokens: tokens[(index >> 1) % 4] ?? 0,
              cache_read_tokens: nullable[index % 5] ?? null,
              cache_write_tokens: nullable[(index >> 2) % 5] ?? null
            }
            const start = { ...(yield* startOf(caller, served)), streamed: index % 2 === 0 }
            const end = endOf(start, {
              usage: random,
              statusCode: [200, 499, 502][index % 3] ?? 200,
              ttftMs: index % 4 === 0 ? null : index / 7,
              finishReason: index % 5 === 0 ? null : "length",
              error: index % 3 === 0 ? null : { code: "c", message: "é\u2028", param: index % 2 === 0 ? null : "p" },
              note: index % 2 === 0 ? null : "n"
            })
            yield* metering.begin(start)
            yield* metering.end(end)
            const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
            const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
            assert.isTrue(Schema.is(RequestRecord)(record))
            assert.isTrue(Schema.is(Receipt)(receipt))
            const cost = costMicros(random, prices).toString()
            assert.deepStrictEqual([record.cost_micros, receipt.cost_micros], [cost, cost])
            assert.deepStrictEqual(receipt.usage, random)
            assert.deepStrictEqual(record.error, end.error)
            assert.deepStrictEqual([receipt.note ?? null, receipt.ttft_ms, receipt.streamed], [end.note, end.ttftMs, start.streamed])
          }
          const { items } = yield* requests.list(caller.orgId, { limit: 200, after: null })
          assert.isTrue(Schema.is(Schema.Array(RequestRecord))(items))
          for (const item of items) assert.deepStrictEqual(item, Option.getOrThrow(yield* requests.find(caller.orgId, item.id)))
        })
      )
    )
  )
})

describe("a gateway that dies", () => {
  const start = Date.UTC(2031, 4, 5)
  it.effect("leaves requests that a sweep ends once their lease is over, with the last checkpoint", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("lost")
      const served = yield* makeServing(caller, "k")
      const [counted, silent, alive, done] = yield* Effect.all([
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served)
      ])
      yield* Effect.forEach([counted, silent, alive, done], metering.begin)
      yield* TestClock.adjust("5 seconds")
      yield* metering.checkpoint(counted.id, usage)
      yield* metering.end(endOf(done))
      yield* TestClock.adjust("14999 millis")
      assert.strictEqual(yield* metering.sweep, 0)
      yield* metering.checkpoint(alive.id, usage)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* metering.sweep, 1)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* metering.sweep, 1)
      assert.strictEqual(yield* metering.sweep, 0)
      const of = Effect.fnUntraced(function* (id: string) {
        return {
          record: Option.getOrThrow(yield* requests.find(caller.orgId, id)),
          receipt: Option.getOrThrow(yield* requests.findReceipt(caller.orgId, id))
        }
      })
      const lost = yield* of(counted.id)
      assert.deepStrictEqual([lost.record.status_code, lost.record.error?.code, lost.record.finish_reason], [500, "gateway_lost", null])
      assert.deepStrictEqual([lost.receipt.usage, lost.receipt.latency_ms, lost.receipt.hf_revision.length], [usage, 5_000, 40])
      assert.isDefined(lost.receipt.note)
      const unheard = yield* of(silent.id)
      assert.deepStrictEqual([unheard.record.input_tokens, unheard.record.output_tokens, unheard.record.cost_micros], [0, 0, "0"])
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, alive.id)).state, "running")
      assert.strictEqual((yield* of(done.id)).record.status_code, 200)
      // It was not dead after all: its end comes too late.
      yield* metering.end(endOf(counted))
      assert.deepStrictEqual((yield* of(counted.id)).record, lost.record)
    }).pipe(Effect.provide(layerStore), (test) => Effect.andThen(TestClock.setTime(start), test))
  )

  it.live("loses no request that was told to be recorded, when it is stopped at any moment", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const requests = yield* Requests
      const { caller } = yield* makeCaller("stopped")
      const served = yield* makeServing(caller, "k")
      for (let round = 0; round < 5; round++) {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(Metering.layerSql, scope).pipe(Effect.provideService(PgClient.PgClient, sql))
        const told = new Set<string>()
        const enough = yield* Deferred.make<void>()
        const serve = Effect.gen(function* () {
          const metering = yield* Metering
          while (true) {
            const request = yield* startOf(caller, served)
            yield* metering.begin(request)
            yield* metering.end(endOf(request))
            told.add(request.id)
            if (told.size === 20 * (round + 1)) yield* Deferred.succeed(enough, undefined)
          }
        }).pipe(Effect.provideContext(context))
        const gateways = yield* Effect.forEach(Array.from({ length: 16 }), () => Effect.forkChild(serve))
        yield* Deferred.await(enough)
        yield* Scope.close(scope, Exit.void)
        yield* Effect.forEach(gateways, Fiber.interrupt)
        for (const id of told) {
          assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, id)).state, "completed")
          assert.isTrue(Option.isSome(yield* requests.findReceipt(caller.orgId, id)))
        }
      }
    }).pipe(Effect.provide(layerStore))
  )

  it.live("goes on when the database's connections were cut", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("cut")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 100 }), () => startOf(caller, served))
      const cut = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
      const serving = yield* Effect.forkChild(
        Effect.forEach(starts, (start) => Effect.andThen(metering.begin(start), metering.end(endOf(start))), { concurrency: 8 })
      )
      yield* Effect.ignore(cut)
      yield* Fiber.join(serving)
      for (const { id } of starts) assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, id)).state, "completed")
    }).pipe(Effect.provide(layerStore))
  )
})

describe("groupCommit", () => {
  it.effect("shares commits among what came meanwhile, never above the batch, and dies when a lost connection stays lost", () =>
    Effect.gen(function* () {
      const batches: Array<number> = []
      const gate = yield* Deferred.make<void>()
      const hand = yield* groupCommit<number>({
        batch: 4,
        committers: 1,
        capacity: 100,
        commit: (rows) =>
          rows.includes(-1)
            ? Effect.fail(new SqlError({ reason: new UnknownError({ cause: Object.assign(new Error("down"), { code: "57P01" }) }) }))
            : Effect.andThen(
                Deferred.await(gate),
                Effect.sync(() => batches.push(rows.length))
              )
      })
      const write = (row: number) => {
        const committed = Deferred.makeUnsafe<void>()
        return Effect.andThen(hand(row, committed), Deferred.await(committed))
      }
      const writers = yield* Effect.forkChild(Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], write, { concurrency: "unbounded" }), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(writers)
      assert.isAtMost(Math.max(...batches), 4)
      assert.isBelow(batches.length, 10)
      const lost = yield* Effect.forkChild(Effect.exit(write(-1)), { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(lost)))
    }).pipe(Effect.scoped)
  )
})
