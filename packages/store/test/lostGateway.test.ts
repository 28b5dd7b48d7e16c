import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { Metering, RequestGivenUp, type RequestStart, Requests } from "../src/index.ts"
import { endOf, startOf, usage } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

/** Advances the database's clock by making all stored times older. */
const timePasses = Effect.fnUntraced(function* (seconds: number) {
  const sql = yield* PgClient.PgClient
  const age = sql.literal(`interval '${seconds} seconds'`)
  yield* sql`UPDATE requests SET lease_until = lease_until - ${age} WHERE state = 'running'`
  yield* sql`UPDATE request_sweeps SET since = since - ${age}, seen = seen - ${age}`
})

/** The requests of live gateways. */
const Living = Context.Reference<ReadonlyArray<RequestStart>>("seatrial/test/Living", { defaultValue: () => [] })

/** Thirty seconds in which gateways sweep every five seconds and live gateways renew their leases. */
const sweepSteadily = Effect.gen(function* () {
  const metering = yield* Metering
  for (let beat = 0; beat < 6; beat++) {
    for (const start of yield* Living) yield* metering.checkpoint(start, usage)
    yield* metering.sweep
    yield* timePasses(5)
  }
  yield* metering.sweep
})

layer(layerStore, { excludeTestServices: true })("a gateway that dies", (it) => {
  it.effect("leaves requests that a sweep ends after their lease, with the usage of the last checkpoint", () =>
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
      yield* Effect.forEach([counted, silent, alive, done], (start) => beginRequest(metering, start))
      yield* metering.checkpoint(counted, usage)
      yield* metering.end(endOf(done))
      for (let beat = 0; beat < 3; beat++) {
        assert.strictEqual(yield* metering.sweep, 0)
        yield* timePasses(6)
      }
      yield* metering.checkpoint(alive, usage)
      assert.strictEqual(yield* metering.sweep, 0)
      yield* timePasses(6)
      assert.strictEqual(yield* metering.sweep, 2)
      assert.strictEqual(yield* metering.sweep, 0)
      const of = Effect.fnUntraced(function* (id: string) {
        return {
          record: Option.getOrThrow(yield* requests.find(caller.orgId, id)),
          receipt: Option.getOrThrow(yield* requests.findReceipt(caller.orgId, id))
        }
      })
      const lost = yield* of(counted.id)
      assert.deepStrictEqual([lost.record.status_code, lost.record.error?.code, lost.record.finish_reason], [500, "gateway_lost", null])
      assert.deepStrictEqual([lost.receipt.usage, lost.receipt.status_code, lost.receipt.hf_revision.length], [usage, 500, 40])
      assert.isDefined(lost.receipt.note)
      const unheard = yield* of(silent.id)
      assert.deepStrictEqual([unheard.record.input_tokens, unheard.record.output_tokens, unheard.record.cost_micros], [0, 0, "0"])
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, alive.id)).state, "running")
      assert.strictEqual((yield* of(done.id)).record.status_code, 200)
    })
  )

  it.effect("and was only disconnected is notified that its end came too late: every reported success has a record", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("late")
      const served = yield* makeServing(caller, "k")
      const [late, first] = yield* Effect.all([startOf(caller, served), startOf(caller, served)])
      yield* Effect.forEach([late, first], (start) => beginRequest(metering, start))
      yield* metering.end(endOf(first))
      yield* sweepSteadily
      const record = yield* requests.find(caller.orgId, late.id)
      assert.strictEqual(Option.getOrThrow(record).error?.code, "gateway_lost")
      const ends = yield* Effect.forEach([late, first, late], (start) => Effect.exit(metering.end(endOf(start))), { concurrency: "unbounded" })
      assert.deepStrictEqual(ends, [Exit.fail(new RequestGivenUp()), Exit.void, Exit.fail(new RequestGivenUp())])
      assert.deepStrictEqual(yield* requests.find(caller.orgId, late.id), record)
    })
  )

  it.effect("is distinguished from a gateway that could not reach the database: after an outage, live gateways renew first", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("outage")
      const served = yield* makeServing(caller, "k")
      const [live, dead] = yield* Effect.all([startOf(caller, served), startOf(caller, served)])
      yield* Effect.forEach([live, dead], (start) => beginRequest(metering, start))
      yield* sweepSteadily.pipe(Effect.provideService(Living, [live, dead]))
      yield* timePasses(60)
      // Another gateway sweeps before the live gateway's checkpoint, and again after it.
      assert.strictEqual(yield* metering.sweep, 0)
      yield* timePasses(5)
      assert.strictEqual(yield* metering.sweep, 0)
      yield* sweepSteadily.pipe(Effect.provideService(Living, [live]))
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, dead.id)).error?.code, "gateway_lost")
      yield* metering.end(endOf(live))
      assert.strictEqual(Option.getOrThrow(yield* requests.findReceipt(caller.orgId, live.id)).status_code, 200)
    })
  )

  it.effect("loses no request that was confirmed as recorded, whenever it is stopped", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const requests = yield* Requests
      const { caller } = yield* makeCaller("stopped")
      const served = yield* makeServing(caller, "k")
      for (let round = 0; round < 5; round++) {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(Metering.layerSql, scope).pipe(Effect.provideService(PgClient.PgClient, sql))
        const recordedIds = new Set<string>()
        const enough = yield* Deferred.make<void>()
        const serve = Effect.gen(function* () {
          const metering = yield* Metering
          while (true) {
            const request = yield* startOf(caller, served)
            yield* beginRequest(metering, request)
            yield* metering.end(endOf(request))
            recordedIds.add(request.id)
            if (recordedIds.size === 20 * (round + 1)) yield* Deferred.succeed(enough, undefined)
          }
        }).pipe(Effect.provideContext(context))
        const gateways = yield* Effect.forEach(Array.from({ length: 16 }), () => Effect.forkChild(serve))
        yield* Deferred.await(enough)
        yield* Scope.close(scope, Exit.void)
        yield* Effect.forEach(gateways, Fiber.interrupt)
        for (const id of recordedIds) {
          assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, id)).state, "completed")
          assert.isTrue(Option.isSome(yield* requests.findReceipt(caller.orgId, id)))
        }
      }
    })
  )

  it.effect("continues after the database's connections were cut", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("cut")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 100 }), () => startOf(caller, served))
      const cut = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
      const serving = yield* Effect.forkChild(
        Effect.forEach(starts, (start) => Effect.andThen(beginRequest(metering, start), metering.end(endOf(start))), { concurrency: 8 })
      )
      yield* Effect.ignore(cut)
      yield* Fiber.join(serving)
      for (const { id } of starts) assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, id)).state, "completed")
    })
  )
})
