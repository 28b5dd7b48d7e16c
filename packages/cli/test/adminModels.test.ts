import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, GpuHolds, HubConnections, Organizations, Runs } from "@seatrial/store"
import { benchmark, capacityRow, makeCaller, makeServing, measured, newModel, speedRow, walk } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer } from "effect"
import { Env, noTrace, parse, seatrial } from "./runCommand.ts"

const storeOf = (env: Readonly<Record<string, string>>) =>
  Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql, Runs.layerSql.pipe(Layer.provide(HubConnections.layerSql))).pipe(
    Layer.provideMerge([Database.layerOwner, Ids.layer]),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
  )

/** An organization with a serving model, in the database of the command. */
const serve = Effect.fnUntraced(function* (slug: string, env: Readonly<Record<string, string>>) {
  return yield* Effect.gen(function* () {
    const { caller } = yield* makeCaller(slug)
    return yield* makeServing(caller, "k")
  }).pipe(Effect.provide(storeOf(env)))
})

/** An organization with a model whose engine reported its memory, and that was benchmarked. */
const measure = Effect.fnUntraced(function* (slug: string, env: Readonly<Record<string, string>>) {
  return yield* Effect.gen(function* () {
    const { caller } = yield* makeCaller(slug)
    const { orgId } = caller
    const [deployments, runs] = [yield* Deployments, yield* Runs]
    const { id } = yield* deployments.create(newModel(caller, "k"))
    yield* walk(caller, id, "measuring")
    yield* runs.recordMeasured(id, orgId, { ...measured, kv_cache_bytes: 2_000_000, kv_layout: { reported: 520, exact: 512, differs: true } }, capacityRow)
    const parts = { image_pull: null, weights_to_node: null, process_to_loaded: 10, loaded_to_ready: 5, first_token: 0.5 }
    yield* runs.recordStart(id, orgId, { podUid: "pod", kind: "warm", parts })
    yield* runs.enter({ id, orgId, from: "measuring", to: "benchmarking", reason: "Test" })
    yield* runs.recordBenchmark(id, orgId, benchmark, speedRow)
  }).pipe(Effect.provide(storeOf(env)))
})

layer(Env.layer, { excludeTestServices: true, timeout: 60_000 })("seatrial admin", (it) => {
  it.effect(
    "publishes and deletes a model only if confirmed, and reports errors in a sentence",
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
    "grants and withdraws reservations",
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
        assert.match(again.err, /beta has no reservation of h100/u)
      }),
    120_000
  )

  it.effect(
    "shows the accuracy of a model's memory estimate, its start times and its benchmark, for people and for programs",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* measure("delta", env)
        const [shown, told, beside, chart, speed] = yield* Effect.all([
          seatrial(["admin", "models", "show", "--org", "delta", "tiny"], env),
          seatrial(["admin", "models", "show", "--org", "delta", "tiny", "--json"], env),
          seatrial(["models", "show", "--org", "delta", "tiny"], env),
          seatrial(["bench", "show", "--org", "delta", "tiny"], env),
          seatrial(["bench", "show", "--org", "delta", "delta/tiny", "--json"], env)
        ])
        const estimate = /^estimate +\S+ KiB to \S+ KiB of KV cache per GPU estimated, 1\.91 MiB measured: outside the estimate, 50\.0% above its center$/mu
        assert.match(shown.out, estimate, shown.err)
        assert.deepStrictEqual(beside, shown)
        assert.match(shown.out, /^kv_layout_differs +520\.0 bytes per token reported, 512\.0 estimated$/mu)
        assert.match(shown.out, /^warm_start +process to loaded 10\.00 s, loaded to ready 5\.00 s, first token 0\.50 s \(median of 1\)$/mu)
        assert.deepNestedInclude(parse(told.out), {
          "estimate.calibrated": false,
          "estimate.kv_cache_bytes": { low: 1_000_000, high: 1_000_001, measured: 2_000_000, inside: false, error: 0.49999975 },
          "measured.kv_cache_tokens": measured.kv_cache_tokens
        })
        assert.match(chart.out, /^delta\/tiny at [0-9a-f]{12}: reference-1 on 1 x Simulated-GPU \(cpu-small\)$/mu, chart.err)
        assert.match(chart.out, /^1 █+ 100 tokens\/s$/mu)
        assert.deepInclude(parse(speed.out), { model: "delta/tiny", ...benchmark })
      }),
    120_000
  )

  it.effect(
    "lists GPU time by day, exact to the micro-dollar, and deducts it from the balance",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const { id } = (yield* serve("gamma", env)).operation
        const layerHolds = GpuHolds.layerSql.pipe(Layer.provide(Database.layerOwner), Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))
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
