import { assert, describe, it } from "@effect/vitest"
import type { Benchmark, Measured } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { Effect, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { benchmarkEngine, makeBenchmarkTurns } from "../../src/work/benchmarkEngine.ts"
import type { EngineUnderTrial } from "../../src/work/EngineUnderTrial.ts"
import { measureEngine } from "../../src/work/measureEngine.ts"
import { pod, podClass, revision, run } from "../observations.ts"

const gib = 2 ** 30
const nothing: Measured = {
  weights_bytes: null,
  kv_cache_bytes: null,
  kv_cache_tokens: null,
  overhead_bytes: null,
  max_concurrency: null,
  load_seconds: null
}

/** An engine of which this is read, whose estimate was 8 to 12 GiB of KV cache. Nothing listens at its address. */
const trialOf = (told: Partial<Measured>): EngineUnderTrial => {
  const engine = engineFor("reference")
  if (engine === undefined) throw new Error("there is no reference engine")
  const estimate = { ...revision.estimate, verdict: "fits" as const, kv_cache_bytes: 8 * gib, headroom_bytes: { low: 0, high: 4 * gib } }
  return {
    run,
    revision: { ...revision, estimate, settings: { ...revision.settings, host_class: "figures" } },
    podClass,
    engine: { ...engine, measured: () => ({ ...nothing, ...told }) },
    namespace: "n",
    pod,
    url: "http://127.0.0.1:9",
    enginePod: undefined,
    node: undefined,
    failedCapability: "withdraw",
    merged: null
  }
}
const answers = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(""))))
)

describe("what a trial finds of an engine", () => {
  it.effect("is kept with the revision, and how far the estimate was from it is counted by host class", () =>
    Effect.gen(function* () {
      const kept: Array<Measured> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(KubeClient)({ podLog: () => Effect.succeed("") }),
        Layer.mock(Runs)({ recordMeasured: (_, __, measured) => Effect.sync(() => kept.push(measured) > 0) })
      )
      for (const told of [{ kv_cache_bytes: 10 * gib }, { kv_cache_bytes: 20 * gib }, {}]) yield* Effect.provide(measureEngine(trialOf(told)), services)
      assert.deepStrictEqual(
        kept.map(({ kv_cache_bytes }) => kv_cache_bytes),
        [10 * gib, 20 * gib, null]
      )
      const shown = yield* PrometheusMetrics.format()
      // The middle of the estimate; half of 20 GiB beside it; and nothing of an engine that does not tell.
      assert.match(shown, /^seatrial_fit_error_ratio_sum\{host_class="figures",inside="true"\} 0$/m)
      assert.match(shown, /^seatrial_fit_error_ratio_sum\{host_class="figures",inside="false"\} 0\.5$/m)
      for (const inside of [true, false]) assert.include(shown, `seatrial_fit_error_ratio_count{host_class="figures",inside="${inside}"} 1\n`)
    })
  )

  it.effect("is read from how its engine's log begins, however much the checks made it say since", () =>
    Effect.gen(function* () {
      const engine = engineFor("sglang")
      if (engine === undefined) return assert.fail()
      const began = "[2026-11-21 07:59:13 TP0] Load weight end. elapsed=12.50 s, type=LlamaForCausalLM, avail mem=60.00 GB, mem usage=15.00 GB."
      // A line for each prompt that is read.
      const since = Array.from({ length: 5_000 }, () => "[2026-11-21 08:09:13 TP0] Prefill batch, #new-seq: 1, #new-token: 64")
      const lines = [began, ...since]
      const kept: Array<Measured> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(KubeClient)({ podLog: (_, __, options) => Effect.succeed(lines.slice(-(options?.tailLines ?? lines.length)).join("\n")) }),
        Layer.mock(Runs)({ recordMeasured: (_, __, measured) => Effect.sync(() => kept.push(measured) > 0) })
      )
      yield* Effect.provide(measureEngine({ ...trialOf({}), engine }), services)
      assert.deepStrictEqual(
        kept.map(({ load_seconds, weights_bytes }) => [load_seconds, weights_bytes]),
        [[12.5, 15 * gib]]
      )
    })
  )

  it.live("is measured under load for as long as the host class gives it", () =>
    Effect.gen(function* () {
      const kept: Array<Benchmark> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(Runs)({
          earlierBenchmarks: () => Effect.succeed([]),
          recordBenchmark: (_, __, benchmark) => Effect.sync(() => kept.push(benchmark) > 0)
        })
      )
      for (const benchmarkSeconds of [4, 150]) {
        const trial = trialOf({})
        yield* Effect.provide(benchmarkEngine(makeBenchmarkTurns())({ ...trial, podClass: { ...trial.podClass, benchmarkSeconds } }), services)
      }
      assert.deepStrictEqual(
        kept.map(({ budget_seconds, scale }) => [budget_seconds, (scale ?? 0) < 0.5]),
        [
          [4, true],
          [150, false]
        ]
      )
    })
  )
})
