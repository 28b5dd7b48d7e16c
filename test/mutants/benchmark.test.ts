import { assert, describe, it } from "@effect/vitest"
import { type Benchmark, benchmarkFault } from "@seatrial/domain"
import { runBenchmark, workload } from "@seatrial/trial"
import { Effect } from "effect"
import { serveSample } from "./serveSample.ts"

const key = {
  commit: "c",
  engine_version: "reference-0.1.0",
  engine_digest: null,
  flags_sha256: "f",
  gpu_pool: "card",
  gpu_count: 1,
  tensor_parallel: 1,
  driver: null
}

interface Step {
  readonly concurrency: number
  readonly leastRequests: number
  readonly leastMillis: number
  readonly outputTokens: number
}

/** One step of the trial's benchmark, on an engine with that fault. */
const benchmarkOf = (mutant: string | undefined, { outputTokens, ...step }: Step) =>
  Effect.gen(function* () {
    const { url } = yield* serveSample(mutant === undefined ? {} : { mutant })
    const work = { ...workload(1, 1_024, null, {}), inputTokens: 16, outputTokens, steps: [{ ...step, mostMillis: 120_000, prolongMillis: 0 }] }
    const benchmarked = { subject: { servedName: "m", vocabSize: 512 }, url, key, hostClass: "h", simulated: true }
    return yield* runBenchmark(benchmarked, { ...work, budgetSeconds: 300 })
  }).pipe(Effect.scoped)

const figuresOf = ({ steps }: Benchmark) => steps[0]?.figures ?? assert.fail()

describe("the benchmark", () => {
  it.live("passes the sound engine, and one that sends two tokens per chunk, whose answers have the same number of tokens", () =>
    Effect.gen(function* () {
      const gaps: Array<number> = []
      for (const mutant of [undefined, "two_tokens_a_chunk"]) {
        const benchmark = yield* benchmarkOf(mutant, { concurrency: 1, leastRequests: 5, leastMillis: 0, outputTokens: 16 })
        assert.isNull(benchmarkFault(benchmark))
        const { chunk_gap_ms, tpot_ms, wrong_counts } = figuresOf(benchmark)
        assert.strictEqual(wrong_counts, 0)
        assert.isAtLeast(tpot_ms.n, 5)
        gaps.push(chunk_gap_ms.n / tpot_ms.n)
      }
      // Only the chunk gaps distinguish the two, because the time per token uses the token count of the engine.
      const [single = 0, double = 0] = gaps
      assert.isAbove(single, 9)
      assert.isBelow(double, 8)
    })
  )

  it.live("fails an engine that returns an error for one in thirty requests", () =>
    Effect.gen(function* () {
      const benchmark = yield* benchmarkOf("one_in_30_fails", { concurrency: 4, leastRequests: 60, leastMillis: 0, outputTokens: 4 })
      assert.match(benchmarkFault(benchmark) ?? "", /^[1-9]\d* of \d+ requests of the benchmark failed \(http_5\d\d\)\.$/)
    })
  )

  it.live("reports an engine that stalls for one second in five", () =>
    Effect.gen(function* () {
      const benchmark = yield* benchmarkOf("stalls", { concurrency: 1, leastRequests: 5, leastMillis: 14_000, outputTokens: 400 })
      const { stalls } = figuresOf(benchmark)
      assert.isAtLeast(stalls?.gaps ?? 0, 1)
      assert.isAtLeast(stalls?.longest_ms ?? 0, 900)
    })
  )
})
