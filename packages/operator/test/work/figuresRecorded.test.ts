import { createServer } from "node:http"
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { type Benchmark, benchmarkFault, dataFrame, type Measured, streamEnd } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { benchmarkEngine, makeBenchmarkTurns } from "../../src/work/benchmarkEngine.ts"
import type { EngineUnderTrial } from "../../src/work/EngineUnderTrial.ts"
import { measureEngine } from "../../src/work/measureEngine.ts"
import { pod, podClass, revision, run } from "../observations.ts"

const gib = 2 ** 30
const Asked = Schema.Struct({ cache_salt: Schema.String, max_tokens: Schema.Int, prompt: Schema.Array(Schema.Int) })
const decodeAsked = Schema.decodeUnknownSync(Schema.fromJsonString(Asked))
const nothing: Measured = {
  weights_bytes: null,
  kv_cache_bytes: null,
  kv_cache_tokens: null,
  overhead_bytes: null,
  max_concurrency: null,
  load_seconds: null
}

/** An engine with these figures, whose estimate was 8 to 12 GiB of KV cache. Nothing listens at its address. */
const trialOf = (figures: Partial<Measured>): EngineUnderTrial => {
  const engine = engineFor("reference")
  if (engine === undefined) throw new Error("there is no reference engine")
  const estimate = { ...revision.estimate, verdict: "fits" as const, kv_cache_bytes: 8 * gib, headroom_bytes: { low: 0, high: 4 * gib } }
  return {
    run,
    revision: { ...revision, estimate, settings: { ...revision.settings, host_class: "figures" } },
    podClass,
    engine: { ...engine, measured: () => ({ ...nothing, ...figures }) },
    namespace: "n",
    pod,
    url: "http://127.0.0.1:9",
    enginePod: undefined,
    node: undefined,
    failedCapability: "withdraw",
    merged: null,
    noReference: null
  }
}
const answers = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(""))))
)

describe("the findings of a trial", () => {
  it.effect("are stored with the revision, and the error of the estimate is counted by host class", () =>
    Effect.gen(function* () {
      const recorded: Array<Measured> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(KubeClient)({ podLog: () => Effect.succeed("") }),
        Layer.mock(Runs)({ recordMeasured: (_, __, measured) => Effect.sync(() => recorded.push(measured) > 0) })
      )
      for (const figures of [{ kv_cache_bytes: 10 * gib }, { kv_cache_bytes: 20 * gib }, {}]) yield* Effect.provide(measureEngine(trialOf(figures)), services)
      assert.deepStrictEqual(
        recorded.map(({ kv_cache_bytes }) => kv_cache_bytes),
        [10 * gib, 20 * gib, null]
      )
      const shown = yield* PrometheusMetrics.format()
      // The middle of the estimate; an error of half of 20 GiB; and no sample for an engine without figures.
      assert.match(shown, /^seatrial_fit_error_ratio_sum\{host_class="figures",inside="true"\} 0$/m)
      assert.match(shown, /^seatrial_fit_error_ratio_sum\{host_class="figures",inside="false"\} 0\.5$/m)
      for (const inside of [true, false]) assert.include(shown, `seatrial_fit_error_ratio_count{host_class="figures",inside="${inside}"} 1\n`)
    })
  )

  it.effect("are read from the beginning of the engine's log, however long the checks made it", () =>
    Effect.gen(function* () {
      const engine = engineFor("sglang")
      if (engine === undefined) return assert.fail()
      const began = "[2026-11-21 07:59:13 TP0] Load weight end. elapsed=12.50 s, type=LlamaForCausalLM, avail mem=60.00 GB, mem usage=15.00 GB."
      // One line for each prompt.
      const since = Array.from({ length: 5_000 }, () => "[2026-11-21 08:09:13 TP0] Prefill batch, #new-seq: 1, #new-token: 64")
      const lines = [began, ...since]
      const recorded: Array<Measured> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(KubeClient)({ podLog: (_, __, options) => Effect.succeed(lines.slice(-(options?.tailLines ?? lines.length)).join("\n")) }),
        Layer.mock(Runs)({ recordMeasured: (_, __, measured) => Effect.sync(() => recorded.push(measured) > 0) })
      )
      yield* Effect.provide(measureEngine({ ...trialOf({}), engine }), services)
      assert.deepStrictEqual(
        recorded.map(({ load_seconds, weights_bytes }) => [load_seconds, weights_bytes]),
        [[12.5, 15 * gib]]
      )
    })
  )

  it.live("include the benchmark within the time limit of the host class", () =>
    Effect.gen(function* () {
      const recorded: Array<Benchmark> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(Runs)({
          earlierBenchmarks: () => Effect.succeed([]),
          recordBenchmark: (_, __, benchmark) => Effect.sync(() => recorded.push(benchmark) > 0)
        })
      )
      for (const benchmarkSeconds of [4, 150]) {
        const trial = trialOf({})
        yield* Effect.provide(benchmarkEngine(makeBenchmarkTurns())({ ...trial, podClass: { ...trial.podClass, benchmarkSeconds } }), services)
      }
      assert.deepStrictEqual(
        recorded.map(({ budget_seconds, scale }) => [budget_seconds, (scale ?? 0) < 0.5]),
        [
          [4, true],
          [150, false]
        ]
      )
    })
  )

  it.live("do not fail for a transient fault under load: the benchmark is repeated, except after a wrong token count", () =>
    Effect.gen(function* () {
      const recorded: Array<Benchmark> = []
      const services = Layer.mergeAll(
        answers,
        Layer.mock(Runs)({
          earlierBenchmarks: () => Effect.succeed([]),
          recordBenchmark: (_, __, benchmark) => Effect.sync(() => recorded.push(benchmark) > 0)
        })
      )
      // Until its last turn it breaks the connection of each request, or counts one token too many.
      const benchmarkOf = (sound: (turn: number) => boolean, fault: "breaks" | "counts") =>
        Effect.gen(function* () {
          const salts = new Set<string>()
          const server = createServer((request, response) => {
            void text(request).then((body) => {
              const { cache_salt, max_tokens, prompt } = decodeAsked(body)
              salts.add(cache_salt)
              if (!sound(salts.size) && fault === "breaks") return response.destroy()
              response.writeHead(200, { "content-type": "text/event-stream" })
              const frames = Array.from({ length: max_tokens }, (_, at) => ({
                choices: [{ text: "a", finish_reason: at + 1 === max_tokens ? "length" : null }]
              }))
              const usage = { prompt_tokens: prompt.length, completion_tokens: max_tokens + (sound(salts.size) ? 0 : 1) }
              const figures = [...frames, { choices: [], usage }].map((frame) => JSON.stringify(frame))
              return response.end([...figures, streamEnd].map((data) => dataFrame(data)).join(""))
            })
          })
          yield* Effect.acquireRelease(
            Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
            () =>
              Effect.sync(() => {
                server.closeAllConnections()
                server.close()
              })
          )
          const address = server.address()
          const url = `http://127.0.0.1:${address === null || typeof address === "string" ? 0 : address.port}`
          const trial = { ...trialOf({}), url }
          yield* Effect.provide(benchmarkEngine(makeBenchmarkTurns())({ ...trial, podClass: { ...trial.podClass, benchmarkSeconds: 1 } }), services)
          return salts.size
        }).pipe(Effect.scoped)
      const turns = [
        yield* benchmarkOf(() => true, "breaks"),
        yield* benchmarkOf((turn) => turn > 1, "breaks"),
        yield* benchmarkOf(() => false, "breaks"),
        yield* benchmarkOf((turn) => turn > 1, "counts")
      ]
      assert.deepStrictEqual(turns, [1, 2, 2, 1])
      assert.deepStrictEqual(
        recorded.map((benchmark) => benchmarkFault(benchmark) === null),
        [true, true, false, false]
      )
    })
  )
})
