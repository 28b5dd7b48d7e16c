import { createServer, type ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { benchmarkFault, dataFrame, streamEnd } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { runBenchmark } from "../../src/benchmark/runBenchmark.ts"
import { workload } from "../../src/benchmark/workload.ts"
import { promptTokens } from "../../src/promptTokens.ts"
import { listenLocally } from "../listenLocally.ts"
import { fakeContext, serveFakeEngine } from "../suite/fakeEngine.ts"
import type { Fault } from "../suite/fakeWords.ts"

const Asked = Schema.Struct({ cache_salt: Schema.String, max_tokens: Schema.Int, prompt: Schema.Array(Schema.Int) })
const decodeAsked = Schema.decodeUnknownSync(Schema.fromJsonString(Asked))

describe("the workload", () => {
  const levels = (work: ReturnType<typeof workload>) => work.steps.map(({ concurrency }) => concurrency)

  it("is 1,024 in and 256 out at 1, S/4 and S streams, within the capacity of the KV cache and the engine's slots", () => {
    const work = workload(300, 8192, 1_000_000, {})
    assert.deepStrictEqual([work.inputTokens, work.outputTokens, levels(work)], [1024, 256, [1, 16, 64]])
    assert.deepStrictEqual(levels(workload(300, 8192, 1280 * 12, {})), [1, 3, 12])
    assert.deepStrictEqual(levels(workload(300, 8192, null, { engine_flags: { max_num_seqs: 2 } })), [1, 2])
    assert.deepStrictEqual(levels(workload(300, 8192, null, { engine_flags: { max_running_requests: 8 } })), [1, 2, 8])
    assert.deepStrictEqual(levels(workload(300, 8192, 100, {})), [1])
  })

  it("has the full times in 300 seconds and more, and their share in less", () => {
    const [alone, together] = workload(300, 8192, null, {}).steps
    assert.deepStrictEqual(alone, { concurrency: 1, leastRequests: 5, leastMillis: 20_000, mostMillis: 75_000, prolongMillis: 30_000 })
    assert.deepStrictEqual(together, { concurrency: 16, leastRequests: 30, leastMillis: 40_000, mostMillis: 75_000, prolongMillis: 30_000 })
    assert.deepStrictEqual(workload(900, 8192, null, {}).steps[0], alone)
    const half = workload(150, 8192, null, {})
    assert.deepStrictEqual([half.scale, half.blockMillis, half.steps[0]?.leastMillis, half.steps[1]?.mostMillis], [0.5, 2_500, 10_000, 37_500])
  })

  it("halves a shorter context, and is reduced in a small budget", () => {
    assert.deepStrictEqual([workload(300, 1024, null, {}).inputTokens, workload(300, 1024, null, {}).outputTokens], [512, 128])
    const small = workload(4, 1024, null, {})
    assert.deepStrictEqual([small.inputTokens, small.outputTokens, levels(small), small.steps[0]?.prolongMillis], [64, 16, [1, 4], 0])
  })

  it("sends the same prompts for the same seed, and no two prompts share a token at one of the first sixteen places", () => {
    assert.deepStrictEqual(promptTokens(512, 20, 3), promptTokens(512, 20, 3))
    assert.isTrue(promptTokens(512, 500, 5).every((id) => id >= 128 && id < 384))
    const prefixes = Array.from({ length: 2_000 }, (_, seed) => promptTokens(100_000, 16, 20_261_121 + seed))
    assert.strictEqual(new Set(prefixes.map((prefix) => prefix.slice(0, 4).join())).size, prefixes.length)
    // No prompt is another one that was shifted.
    const pairs = new Set(prefixes.flatMap((prefix) => prefix.slice(1).map((id, index) => `${prefix[index]},${id}`)))
    assert.isAbove(pairs.size, 0.99 * prefixes.length * 15)
  })
})

describe("the benchmark", () => {
  const runAt = (url: string, change: Partial<ReturnType<typeof workload>> = {}) =>
    Effect.suspend(() => {
      const key = {
        commit: "c",
        engine_version: "fake-1.0.0",
        engine_digest: null,
        flags_sha256: "f",
        gpu_pool: "card",
        gpu_count: 2,
        tensor_parallel: 2,
        driver: null
      }
      const benchmarked = { subject: { servedName: "acme/fake", vocabSize: 1000 }, url, key, hostClass: "h", simulated: true }
      return runBenchmark(benchmarked, { ...workload(1, fakeContext, null, {}), inputTokens: 16, outputTokens: 8, ...change })
    })
  const run = (fault?: Fault) => Effect.scoped(Effect.flatMap(serveFakeEngine(fault), ({ url }) => runAt(url)))

  it.live("does not reuse the prefix cache of an earlier run: its prompts are the same, with a new salt", () =>
    Effect.gen(function* () {
      const requests: Array<typeof Asked.Type> = []
      const server = createServer((request, response) => {
        void text(request).then((body) => {
          requests.push(decodeAsked(body))
          response.writeHead(503).end()
        })
      })
      const { url } = yield* listenLocally(server)
      yield* runAt(url)
      const first = requests.splice(0)
      yield* runAt(url)
      assert.deepStrictEqual(
        requests.map(({ prompt }) => prompt),
        first.map(({ prompt }) => prompt)
      )
      const salts = (bodies: typeof first) => new Set(bodies.map(({ cache_salt }) => cache_salt))
      assert.deepStrictEqual([salts(first).size, salts(requests).size, salts([...first, ...requests]).size], [1, 1, 2])
    }).pipe(Effect.scoped)
  )

  /** An engine that sends the requested number of tokens, each after some milliseconds. */
  const slowEngine = (waits: (token: number) => number, onRequest: (tokens: number) => void = () => {}) =>
    Effect.gen(function* () {
      const send = async (response: ServerResponse, tokens: number) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        const frame = (data: object) => response.write(dataFrame(data))
        for (let token = 1; token <= tokens && !response.destroyed; token++) {
          await new Promise((resolve) => setTimeout(resolve, waits(token)))
          frame({ choices: [{ text: "a", finish_reason: token === tokens ? "length" : null }] })
        }
        frame({ choices: [], usage: { prompt_tokens: 16, completion_tokens: tokens, total_tokens: 16 + tokens } })
        response.end(dataFrame(streamEnd))
      }
      const server = createServer((request, response) => {
        void text(request).then((body) => {
          const { max_tokens } = decodeAsked(body)
          onRequest(max_tokens)
          return send(response, max_tokens)
        })
      })
      const { url } = yield* listenLocally(server)
      return url
    })

  it.live("fails an engine with less than one token per second, within its own time limit", () =>
    Effect.gen(function* () {
      const url = yield* slowEngine((token) => (token === 1 ? 1 : 10_000))
      const steps = workload(1, fakeContext, null, {}).steps.map((step) => ({ ...step, mostMillis: 100 }))
      const benchmark = yield* runAt(url, { steps, drainMillis: 1_600 })
      assert.isUndefined(benchmark.missing)
      assert.match(benchmarkFault(benchmark) ?? "", /^A single request generated 0\.\d+ tokens per second; the minimum is 1\.$/)
    }).pipe(Effect.scoped)
  )

  it.live("sends at least one request, however late its threads start", () =>
    Effect.gen(function* () {
      const url = yield* slowEngine(() => 1)
      const steps = workload(1, fakeContext, null, {}).steps.map((step) => ({ ...step, mostMillis: 0 }))
      const benchmark = yield* runAt(url, { steps })
      assert.deepStrictEqual(
        benchmark.steps.map(({ requests }) => requests),
        [1, 4]
      )
    }).pipe(Effect.scoped)
  )

  it.live("fails an engine that does not answer a single request, however short the step is", () =>
    Effect.gen(function* () {
      const url = yield* slowEngine(() => 10_000)
      const steps = workload(1, fakeContext, null, {}).steps.map((step) => ({ ...step, mostMillis: 100 }))
      const benchmark = yield* runAt(url, { steps, drainMillis: 300 })
      assert.isUndefined(benchmark.missing)
      assert.strictEqual(benchmarkFault(benchmark), "1 of 1 requests of the benchmark failed (no_token).")
      // Without that error there is still no answer.
      const [alone] = benchmark.steps
      if (alone?.figures === undefined) return assert.fail()
      const cut = { ...alone, errors: 0, figures: { ...alone.figures, unfinished: 1, error_kinds: {} } }
      assert.strictEqual(benchmarkFault({ ...benchmark, steps: [cut] }), "No request of the benchmark was answered.")
    }).pipe(Effect.scoped)
  )

  it.live("shows an engine that stalls now and then", () =>
    Effect.gen(function* () {
      // A hundred times as long as the other gaps on a busy machine.
      const url = yield* slowEngine((token) => (token === 32 ? 1_000 : 1))
      const benchmark = yield* runAt(url, { outputTokens: 40, steps: workload(1, fakeContext, null, {}).steps.slice(0, 1) })
      assert.isNull(benchmarkFault(benchmark))
      for (const { figures } of benchmark.steps) {
        assert.isAtLeast(figures?.stalls?.gaps ?? 0, 1)
        assert.isAtLeast(figures?.stalls?.longest_ms ?? 0, 990)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is preceded by a warm-up, alone and with all streams, which does not affect the figures", () =>
    Effect.gen(function* () {
      const requests: Array<number> = []
      const url = yield* slowEngine(
        () => 1,
        (tokens) => requests.push(tokens)
      )
      const benchmark = yield* runAt(url, { outputTokens: 40 })
      assert.isNull(benchmarkFault(benchmark))
      assert.deepStrictEqual(requests.slice(0, 6), [40, 40, 32, 32, 32, 32])
      const counted = benchmark.steps.reduce((sum, { errors, figures, requests }) => sum + requests + errors + (figures?.unfinished ?? 0), 0)
      assert.deepStrictEqual([counted, new Set(requests.slice(6)).size], [requests.length - 6, 1])
    }).pipe(Effect.scoped)
  )

  it.live("measures each step", () =>
    Effect.gen(function* () {
      const benchmark = yield* run()
      assert.isNull(benchmarkFault(benchmark))
      assert.deepStrictEqual(
        benchmark.steps.map(({ concurrency, errors }) => [concurrency, errors]),
        [
          [1, 0],
          [4, 0]
        ]
      )
      for (const { concurrency, figures, output_tokens_per_s, requests } of benchmark.steps) {
        assert.isAtLeast(requests, concurrency)
        assert.isAbove(output_tokens_per_s, 0)
        assert.strictEqual(figures?.ttft_ms.n, requests)
        // Two GPUs.
        assert.closeTo((figures?.output_tokens_per_s_per_gpu ?? 0) * 2, output_tokens_per_s, 0.01)
      }
    })
  )

  it.live.each([
    ["every other request fails", "http_500", /requests of the benchmark failed \(http_500\)/],
    ["usage one short", "wrong_counts", /failed \(wrong_counts\)/],
    ["no usage chunk", "no_usage", /failed \(no_usage\)/],
    ["no end marker", "no_done", /failed \(no_done\)/]
  ] as const)('fails an engine with the fault "%s", and reports it', ([fault, kind, words]) =>
    Effect.gen(function* () {
      const benchmark = yield* run(fault)
      const kinds = benchmark.steps.map(({ figures }) => figures?.error_kinds[kind] ?? 0)
      assert.isAbove(
        kinds.reduce((sum, count) => sum + count, 0),
        0
      )
      assert.match(benchmarkFault(benchmark) ?? "", words)
    })
  )
})
