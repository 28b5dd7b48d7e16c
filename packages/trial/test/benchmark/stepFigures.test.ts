import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { RequestRecord } from "../../src/benchmark/RequestRecord.ts"
import { boundRanks, distributionOf, meanOf } from "../../src/benchmark/statistics.ts"
import { stepFigures, windowOf } from "../../src/benchmark/stepFigures.ts"

describe("a distribution", () => {
  const upTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1)

  it.each([
    ["p50", 5],
    ["p90", 29],
    ["p95", 59],
    ["p99", 299]
  ] as const)("has its %s from %d values on, and no sooner", (name, least) => {
    assert.isNull(distributionOf(upTo(least - 1))[name])
    const quantile = distributionOf(upTo(least))[name]
    assert.strictEqual(quantile?.value, Math.ceil((Number(name.slice(1)) / 100) * least))
    // The least sample that bounds it does so by its largest value.
    assert.strictEqual(quantile?.high, least)
  })

  it("is bounded by the ranks of the binomial tables", () => {
    // One-sided 95% bounds of the median: n = 20 from 6 to 15, n = 100 from 42 to 59; of the 90th percentile of 100 from 85 to 96.
    assert.deepStrictEqual(boundRanks(20, 0.5), { low: 6, high: 15 })
    assert.deepStrictEqual(boundRanks(100, 0.5), { low: 42, high: 59 })
    assert.deepStrictEqual(boundRanks(100, 0.9), { low: 85, high: 96 })
  })

  it("has continuous bounds between small and large samples", () => {
    for (const q of [0.5, 0.9, 0.95, 0.99]) {
      const [exact, approximate] = [boundRanks(1_000, q), boundRanks(1_001, q)]
      assert.isAtMost(Math.abs((exact?.low ?? 0) - (approximate?.low ?? 0)), 2)
      assert.isAtMost(Math.abs((exact?.high ?? 0) - (approximate?.high ?? 0)), 2)
    }
  })

  it.prop("consists of values of the sample, in order", [Schema.Array(Schema.Int)], ([values]) => {
    const { n, p50 } = distributionOf(values)
    if (p50 === null) return n < 5
    const atMost = values.filter((other) => other <= p50.value).length
    return (
      n === values.length &&
      [p50.low, p50.value, p50.high].every((value) => values.includes(value)) &&
      p50.low <= p50.value &&
      p50.value <= p50.high &&
      atMost * 2 >= n
    )
  })

  it("reports the standard error of a mean", () => {
    assert.isNull(meanOf([1]))
    assert.deepStrictEqual(meanOf([4, 8]), { mean: 6, standardError: 2 })
  })
})

/** A request whose tokens come at an even pace. */
const answer = (stream: number, sentAt: number, first: number, gap: number, chunks: number, perChunk = 1): RequestRecord => ({
  stream,
  sentAt,
  arrivals: Array.from({ length: chunks }, (_, index) => sentAt + first + index * gap),
  outcome: "answered",
  tokens: chunks * perChunk
})
const step = { inputTokens: 1_000, gpus: 2, blockMillis: 100, prolonged: false, delayP99: 1 }

describe("the figures of a step", () => {
  // Alone: six requests of 11 tokens, the first after 100 ms, one each 10 ms, the next sent 50 ms after the last token.
  const alone = Array.from({ length: 6 }, (_, index) => answer(0, index * 250, 100, 10, 11))

  it("equal the schedule exactly", () => {
    const { figures, ...rest } = stepFigures({ ...step, concurrency: 1, records: alone, closedAt: 1_500 })
    assert.deepStrictEqual(rest, {
      concurrency: 1,
      requests: 6,
      errors: 0,
      // From the first token at 100 ms until no request followed at 1,500 ms.
      seconds: 1.4,
      ttft_ms_p50: 100,
      ttft_ms_p90: null,
      tpot_ms_p50: 10,
      tpot_ms_p90: null,
      output_tokens_per_s: 47.143
    })
    assert.deepStrictEqual(figures?.chunk_gap_ms, {
      n: 60,
      p50: { value: 10, low: 10, high: 10 },
      p90: { value: 10, low: 10, high: 10 },
      p95: { value: 10, low: 10, high: 10 },
      p99: null
    })
    assert.strictEqual(figures?.e2e_ms.p50?.value, 200)
    assert.strictEqual(figures?.prefill_tokens_per_s, 10_000)
    assert.strictEqual(figures?.requests_per_s, 4.286)
    assert.strictEqual(figures?.goodput_per_s, 4.286)
    assert.strictEqual(figures?.output_tokens_per_s_per_gpu, 23.572)
  })

  it("have a window without ramp and drain", () => {
    const records = [answer(0, 0, 100, 10, 11), answer(1, 0, 400, 10, 11), answer(0, 250, 100, 10, 100)]
    assert.deepStrictEqual(windowOf(records, 2, 700), { from: 400, to: 700 })
    const { output_tokens_per_s, seconds } = stepFigures({ ...step, concurrency: 2, records, closedAt: 700 })
    // 11 tokens of the second stream and 30 of the first one's second answer.
    assert.deepStrictEqual([seconds, output_tokens_per_s], [0.3, 136.667])
    // A stream that never had a token leaves no window.
    assert.strictEqual(stepFigures({ ...step, concurrency: 3, records, closedAt: 700 }).output_tokens_per_s, 0)
  })

  it("change only in the gaps of chunks if a chunk has two tokens", () => {
    const single = stepFigures({ ...step, concurrency: 1, records: alone, closedAt: 1_500 })
    // The same tokens at the same pace, two at a time: the last of 12 as late as it was.
    const double = Array.from({ length: 6 }, (_, index) => answer(0, index * 250, 100, 20, 6, 2))
    const paired = stepFigures({ ...step, concurrency: 1, records: double, closedAt: 1_500 })
    assert.strictEqual(paired.figures?.chunk_gap_ms.p50?.value, 20)
    assert.closeTo(paired.tpot_ms_p50 ?? 0, single.tpot_ms_p50 ?? 0, 1)
    assert.closeTo(paired.output_tokens_per_s, (single.output_tokens_per_s * 12) / 11, 0.01)
  })

  it("show a stall in the gaps of chunks", () => {
    const stalled = alone.map((record) => ({ ...record, arrivals: record.arrivals.map((at, index) => at + (index > 6 ? 500 : 0)) }))
    const { figures } = stepFigures({ ...step, concurrency: 1, records: stalled, closedAt: 2_000 })
    assert.deepStrictEqual([figures?.chunk_gap_ms.p50?.value, figures?.chunk_gap_ms.p90?.high], [10, 510])
  })

  it("show the time of one stall in two hundred tokens, which no percentile shows", () => {
    const { arrivals, ...rest } = answer(0, 0, 100, 20, 201)
    const judged = (stall: number) =>
      stepFigures({ ...step, concurrency: 1, records: [{ ...rest, arrivals: arrivals.map((at, index) => at + (index > 100 ? stall : 0)) }], closedAt: 6_000 })
    const [sound, stalled] = [judged(0).figures, judged(980).figures]
    assert.deepStrictEqual([sound?.stalls, sound?.chunk_gap_ms.p90?.value], [{ gaps: 0, longest_ms: 0, share: 0 }, 20])
    assert.deepStrictEqual([stalled?.stalls, stalled?.chunk_gap_ms.p90?.value], [{ gaps: 1, longest_ms: 1_000, share: 0.201 }, 20])
    // Slower than a fifth of a second, and ten times slower than the rest: neither alone is one.
    assert.strictEqual(judged(170).figures?.stalls?.gaps, 0)
  })

  it("count errors and unfinished requests, and drop neither", () => {
    const cut: RequestRecord = { stream: 1, sentAt: 0, arrivals: [100, 110, 120, 130], outcome: "unfinished", tokens: 0 }
    const failed: RequestRecord = { stream: 1, sentAt: 0, arrivals: [], outcome: "http_500", tokens: 0 }
    const wrong: RequestRecord = { ...answer(0, 0, 100, 10, 11), outcome: "wrong_counts" }
    const { errors, figures, output_tokens_per_s, requests, seconds } = stepFigures({ ...step, concurrency: 1, records: [cut, failed, wrong], closedAt: 200 })
    assert.deepStrictEqual([requests, errors, figures?.unfinished, figures?.wrong_counts], [0, 2, 1, 1])
    assert.deepStrictEqual(figures?.error_kinds, { http_500: 1, wrong_counts: 1 })
    // What came of an answer that was cut short is throughput too; a wrong answer's is none.
    assert.deepStrictEqual([seconds, output_tokens_per_s], [0.1, 40])
    assert.deepStrictEqual([figures?.ttft_ms.n, figures?.tpot_ms.n, figures?.e2e_ms.n], [1, 0, 0])
  })

  it("assume for an unfinished answer the tokens per chunk of the complete answers", () => {
    const completeAnswer = answer(0, 0, 100, 40, 11, 4)
    const cut: RequestRecord = { ...answer(1, 0, 100, 40, 11), outcome: "unfinished", tokens: 0 }
    const { figures, output_tokens_per_s } = stepFigures({ ...step, concurrency: 2, records: [completeAnswer, cut], closedAt: 500 })
    // Ten chunks of each lie within 400 ms, of four tokens all.
    assert.strictEqual(output_tokens_per_s, 200)
    assert.deepStrictEqual(figures?.blocks.tokens_per_s, [240, 160, 240, 160])
  })

  it("are steady if the blocks are similar, and invalid if the generator was the limit", () => {
    const even = [answer(0, 0, 10, 10, 101)]
    const { figures } = stepFigures({ ...step, concurrency: 1, records: even, closedAt: 1_010, delayP99: 10.5 })
    assert.deepStrictEqual(figures?.blocks, { seconds: 0.1, tokens_per_s: Array.from({ length: 10 }, () => 100), mean: 100, standard_error: 0 })
    assert.deepStrictEqual([figures?.steady, figures?.client_limited], [true, true])
    const uneven = stepFigures({ ...step, concurrency: 1, records: [answer(0, 0, 10, 10, 20)], closedAt: 1_010 }).figures
    assert.deepStrictEqual([uneven?.steady, uneven?.client_limited], [false, false])
    assert.isNull(stepFigures({ ...step, concurrency: 1, records: even, closedAt: 150 }).figures?.steady)
  })
})
