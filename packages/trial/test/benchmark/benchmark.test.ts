import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { runBenchmark } from "../../src/benchmark/runBenchmark.ts"
import { quantile, weightWithin } from "../../src/benchmark/statistics.ts"
import { workload } from "../../src/benchmark/workload.ts"
import { makeEngineClient } from "../../src/EngineClient.ts"
import { tokenIds } from "../../src/Subject.ts"
import { fakeContext, serveFakeEngine } from "../suite/fakeEngine.ts"
import type { Fault } from "../suite/fakeWords.ts"

describe("a quantile", () => {
  it("is null where the sample is too small to bound it", () => {
    const upTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1)
    assert.isNull(quantile(upTo(4), 0.5))
    assert.strictEqual(quantile(upTo(5), 0.5), 3)
    assert.isNull(quantile(upTo(28), 0.9))
    assert.strictEqual(quantile(upTo(29), 0.9), 27)
    assert.isNull(quantile([], 0.5))
  })

  it.prop("is a value of the sample with at least its share at or below it", [Schema.Array(Schema.Int)], ([values]) => {
    const value = quantile(values, 0.5)
    return value === null ? values.length < 5 : values.includes(value) && values.filter((other) => other <= value).length * 2 >= values.length
  })
})

it("throughput counts tokens where they came, several in one chunk too", () => {
  assert.strictEqual(weightWithin([{ arrivals: [1, 2, 3, 4], tokens: 8 }], 2, 4), 4)
  assert.strictEqual(weightWithin([{ arrivals: [], tokens: 8 }], 0, 9), 0)
})

describe("the workload", () => {
  it("is 1,024 in and 256 out at 1, S/4 and S streams, within what the KV cache holds", () => {
    const { inputTokens, outputTokens, steps } = workload(300, 8192, 1_000_000, {})
    assert.deepStrictEqual([inputTokens, outputTokens, steps.map(({ concurrency }) => concurrency)], [1024, 256, [1, 16, 64]])
    assert.isAtMost(
      steps.reduce((sum, { millis }) => sum + millis, 0),
      225_000
    )
    assert.deepStrictEqual(
      workload(300, 8192, 1280 * 12, {}).steps.map(({ concurrency }) => concurrency),
      [1, 3, 12]
    )
    assert.deepStrictEqual(
      workload(300, 8192, null, { engine_flags: { max_num_seqs: 2 } }).steps.map(({ concurrency }) => concurrency),
      [1, 2]
    )
  })

  it("halves a context that is shorter, and keeps within a small budget", () => {
    assert.deepStrictEqual([workload(300, 1024, null, {}).inputTokens, workload(300, 1024, null, {}).outputTokens], [512, 128])
    const small = workload(4, 1024, null, {})
    assert.deepStrictEqual([small.inputTokens, small.outputTokens, small.steps.at(-1)?.concurrency], [64, 16, 4])
    assert.isAtMost(
      small.steps.reduce((sum, { millis }) => sum + millis, 0),
      3_000
    )
  })

  it("sends the same prompts for the same seed, and none that share a prefix", () => {
    assert.deepStrictEqual(tokenIds({ vocabSize: 512 }, 20, 3), tokenIds({ vocabSize: 512 }, 20, 3))
    assert.notDeepEqual(tokenIds({ vocabSize: 512 }, 4, 3), tokenIds({ vocabSize: 512 }, 4, 4))
    assert.isTrue(tokenIds({ vocabSize: 512 }, 500, 5).every((id) => id >= 128 && id < 384))
  })
})

describe("the benchmark", () => {
  const run = (fault?: Fault) =>
    Effect.gen(function* () {
      const { url } = yield* serveFakeEngine(fault)
      const client = yield* makeEngineClient(url, "5 seconds")
      const subject = {
        client,
        servedName: "acme/fake",
        maxContext: fakeContext,
        engineVersion: "fake-1.0.0",
        vocabSize: 1000,
        chat: true,
        card: "simulated x1"
      }
      return yield* runBenchmark(subject, { ...workload(1, fakeContext, null, {}), inputTokens: 16, outputTokens: 8 })
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  it.live("measures each step and drops no error", () =>
    Effect.gen(function* () {
      const { steps } = yield* run()
      assert.deepStrictEqual(
        steps.map(({ concurrency, errors }) => [concurrency, errors]),
        [
          [1, 0],
          [4, 0]
        ]
      )
      for (const { concurrency, output_tokens_per_s, requests } of steps) {
        assert.isAtLeast(requests, concurrency)
        assert.isAbove(output_tokens_per_s, 0)
      }
    })
  )

  it.live("counts failed requests and wrong token counts as errors", () =>
    Effect.gen(function* () {
      const failing = yield* run("every other request fails")
      assert.isAbove(
        failing.steps.reduce((sum, { errors }) => sum + errors, 0),
        0
      )
      const short = yield* run("usage one short")
      assert.strictEqual(
        short.steps.reduce((sum, { requests }) => sum + requests, 0),
        0
      )
    })
  )
})
