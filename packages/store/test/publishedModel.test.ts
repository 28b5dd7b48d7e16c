import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { costMicros, zeroPrices } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { Metering, ModelAdmin, Requests, Routes, Runs } from "../src/index.ts"
import { endOf, prices, startOf, usage } from "./requestRows.ts"
import { layerStore, soon } from "./stage.ts"
import { beginRequest, checks, makeCaller, makeServing } from "./support/index.ts"

layer(ModelAdmin.layerSql.pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })("a published model", (it) => {
  it.effect("is billed at its rates to every organization except its own, which pays for the GPUs; every receipt contains its verification", () =>
    Effect.gen(function* () {
      const [admin, metering, requests, routes] = [yield* ModelAdmin, yield* Metering, yield* Requests, yield* Routes]
      const [owner, stranger] = [yield* makeCaller("publisher"), yield* makeCaller("stranger")]
      const served = yield* makeServing(owner.caller, "k", "open")
      yield* admin.publish(owner.caller.orgId, served.modelId, prices)
      yield* soon(Effect.map(routes.find(stranger.caller.orgId, "open"), Option.isSome))

      for (const [{ caller }, rates] of [
        [owner, zeroPrices],
        [stranger, prices]
      ] as const) {
        const route = Option.getOrThrow(yield* routes.find(caller.orgId, "open"))
        assert.deepStrictEqual(route.prices, rates)
        const start = yield* startOf(caller, { ...served, model: route.model })
        yield* beginRequest(metering, start)
        const { engineVersion, hfRevision } = route
        yield* metering.end(endOf(start, { receipt: { prices: route.prices, hfRevision, engineVersion } }))
        const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
        assert.deepStrictEqual([receipt.prices, receipt.cost_micros], [rates, costMicros(usage, rates).toString()])
        assert.deepStrictEqual(receipt.verification?.checks, checks.checks)
        // Requests of the other organization belong to it.
        const other = caller === owner.caller ? stranger.caller : owner.caller
        assert.isTrue(Option.isNone(yield* requests.find(other.orgId, start.id)))
        assert.isTrue(Option.isNone(yield* requests.findReceipt(other.orgId, start.id)))
      }
    })
  )

  it.effect("is named in the receipt of another organization's request, even if its gateway was lost", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [admin, metering, requests] = [yield* ModelAdmin, yield* Metering, yield* Requests]
      const [owner, stranger] = [yield* makeCaller("host"), yield* makeCaller("guest")]
      const served = yield* makeServing(owner.caller, "k", "hosted")
      yield* admin.publish(owner.caller.orgId, served.modelId, prices)
      const [theirs, own] = [yield* startOf(stranger.caller, served), yield* startOf(owner.caller, served)]
      for (const start of [theirs, own]) {
        yield* beginRequest(metering, start)
        yield* metering.checkpoint(start, usage)
      }
      yield* metering.sweep
      // Advances the database's clock.
      yield* sql`UPDATE requests SET lease_until = lease_until - interval '1 hour' WHERE state = 'running'`
      yield* sql`UPDATE request_sweeps SET since = since - interval '1 hour'`
      assert.strictEqual(yield* metering.sweep, 2)
      const lost = Option.getOrThrow(yield* requests.findReceipt(stranger.caller.orgId, theirs.id))
      assert.deepStrictEqual([lost.prices, lost.cost_micros, lost.hf_revision.length], [prices, costMicros(usage, prices).toString(), 40])
      const free = Option.getOrThrow(yield* requests.findReceipt(owner.caller.orgId, own.id))
      assert.deepStrictEqual([free.prices, free.cost_micros, free.hf_revision], [zeroPrices, "0", lost.hf_revision])
    })
  )

  it.effect("keeps its engine for requests in progress of every organization", () =>
    Effect.gen(function* () {
      const [admin, metering, runs] = [yield* ModelAdmin, yield* Metering, yield* Runs]
      const [owner, stranger] = [yield* makeCaller("landlord"), yield* makeCaller("lodger")]
      const served = yield* makeServing(owner.caller, "k", "let")
      yield* admin.publish(owner.caller.orgId, served.modelId, prices)
      const start = yield* startOf(stranger.caller, served)
      yield* beginRequest(metering, start)
      yield* admin.disable(owner.caller.orgId, served.modelId)
      const inFlight = Effect.map(runs.observe(served.operation.id), (run) => Option.getOrThrow(run).inFlight)
      assert.strictEqual(yield* inFlight, 1)
      yield* metering.end(endOf(start))
      assert.strictEqual(yield* inFlight, 0)
    })
  )
})
