import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, GpuHolds, HubConnections, Organizations, Runs } from "@seatrial/store"
import { makeCaller, makeServing } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer } from "effect"
import { Env, noTrace, parse, seatrial } from "./runCommand.ts"

/** An organisation with a model that serves, in the database of the command. */
const serve = Effect.fnUntraced(function* (slug: string, env: Readonly<Record<string, string>>) {
  const layerStore = Layer.mergeAll(
    Organizations.layerSql,
    ApiKeys.layerSql,
    Deployments.layerSql,
    Runs.layerSql.pipe(Layer.provide(HubConnections.layerSql))
  ).pipe(Layer.provideMerge([Database.layerMigrated, Ids.layer]), Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))
  return yield* Effect.gen(function* () {
    const { caller } = yield* makeCaller(slug)
    return yield* makeServing(caller, "k")
  }).pipe(Effect.provide(layerStore))
})

layer(Env.layer, { excludeTestServices: true, timeout: 60_000 })("seatrial admin", (it) => {
  it.effect(
    "publishes and deletes a model, only where that is confirmed, and says what is wrong in a sentence",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* serve("acme", env)
        const models = (verb: string, ...args: ReadonlyArray<string>) => seatrial(["admin", "models", verb, "--org", "acme", "--json", ...args], env)
        const unconfirmed = yield* models("delete", "tiny")
        assert.deepStrictEqual([unconfirmed.code, unconfirmed.out], [2, ""])
        const rates = ["--input", "1", "--output", "2", "--cache-read", "3"]
        const published = yield* models("publish", "tiny", "--yes", ...rates, "--cache-write", "4")
        const prices = { input_micros_per_mtok: "1", output_micros_per_mtok: "2", cache_read_micros_per_mtok: "3", cache_write_micros_per_mtok: "4" }
        assert.deepInclude(parse(published.out), { model: "tiny", visibility: "public", prices })
        const unknown = yield* seatrial(["bench", "show", "--org", "acme", "tiny"], env)
        assert.deepStrictEqual([unknown.code, unknown.out], [1, ""])
        assert.match(unknown.err, /has not been benchmarked yet/u)
        assert.strictEqual((yield* models("delete", "tiny", "--yes")).code, 0)
        const gone = yield* models("show", "tiny")
        assert.strictEqual(gone.code, 1)
        assert.match(gone.err, /acme has no model tiny/u)
        noTrace(gone)
      }),
    120_000
  )

  it.effect(
    "sets GPUs aside and takes them back",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* seatrial(["admin", "orgs", "create", "beta"], env)
        const reservations = (...args: ReadonlyArray<string>) => seatrial(["admin", "reservations", ...args, "--json"], env)
        const own = ["--org", "beta", "--host-class", "h100"]
        assert.deepStrictEqual(parse((yield* reservations("grant", ...own, "--gpus", "4")).out), { org: "beta", host_class: "h100", gpus: 4, before: 0 })
        assert.strictEqual((yield* reservations("withdraw", ...own)).code, 2)
        assert.strictEqual((yield* reservations("withdraw", ...own, "--yes")).code, 0)
        const again = yield* reservations("withdraw", ...own, "--yes")
        assert.strictEqual(again.code, 1)
        assert.match(again.err, /Nothing of h100 is set aside for beta/u)
      }),
    120_000
  )

  it.effect(
    "tells GPU time by day, to the micro-dollar, and takes it off the balance",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const { id } = (yield* serve("gamma", env)).operation
        const layerHolds = GpuHolds.layerSql.pipe(Layer.provide(Database.layer), Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))
        yield* Effect.gen(function* () {
          const holds = yield* GpuHolds
          const placedAt = Date.parse("2026-03-01T23:59:59.500Z")
          yield* holds.place({ podUid: "p", pod: "engine", deploymentId: id, hostClass: "h100", gpus: 2, pricePerGpuHour: 3_600_000_000n, placedAt })
          yield* holds.release("p", placedAt + 1_250)
        }).pipe(Effect.provide(layerHolds))
        const [used, balance, wrong] = yield* Effect.all([
          seatrial(["admin", "usage", "gpu", "--org", "gamma", "--from", "2026-03-01", "--to", "2026-03-31", "--json"], env),
          seatrial(["admin", "credits", "balance", "--org", "gamma", "--json"], env),
          seatrial(["admin", "usage", "gpu", "--org", "gamma", "--from", "2026-02-30"], env)
        ])
        assert.deepStrictEqual(parse(used.out), [
          { day: "2026-03-01", deployment: id, host_class: "h100", gpu_seconds: "1.000", cost_micros: "1000000" },
          { day: "2026-03-02", deployment: id, host_class: "h100", gpu_seconds: "1.500", cost_micros: "1500000" }
        ])
        assert.deepInclude(parse(balance.out), { gpu_time_micros: "2500000", balance_micros: "2500000" })
        assert.deepStrictEqual([wrong.code, wrong.out], [2, ""])
      }),
    120_000
  )
})
