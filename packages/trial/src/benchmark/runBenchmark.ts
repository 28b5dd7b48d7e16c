import type { Benchmark, BenchmarkStep } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import type { StreamedAnswer } from "../EngineClient.ts"
import { greedy, type Subject, textPath, tokenIds } from "../Subject.ts"
import { quantile, weightWithin } from "./statistics.ts"
import type { Workload } from "./workload.ts"

const suite = "seatrial-bench"
const suiteVersion = 1

const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
const rounded = (value: number) => Math.round(value * 1_000) / 1_000

/** One streamed request of the workload; none where it failed or did not count its tokens as asked. */
const request = (subject: Subject, inputTokens: number, outputTokens: number, seed: number) =>
  subject.client
    .stream(textPath, {
      model: subject.servedName,
      prompt: tokenIds(subject, inputTokens, seed),
      ...greedy,
      max_tokens: outputTokens,
      ignore_eos: true
    })
    .pipe(
      Effect.map((answer) => (answer.usage.completion_tokens === outputTokens && answer.arrivals.length > 0 ? answer : null)),
      Effect.catch(() => Effect.succeed(null))
    )

/**
 * A closed loop: so many streams, each sending its next request when the last one ended, until the time is over. Requests at work then are finished and counted, but
 * throughput counts only tokens that came while all streams were at work.
 */
const runStep = Effect.fnUntraced(function* (subject: Subject, work: Workload, step: Workload["steps"][number], firstSeed: number) {
  const { concurrency, millis } = step
  const answers: Array<StreamedAnswer> = []
  const firstArrivals: Array<number> = []
  let errors = 0
  let seed = firstSeed
  const startedAt = yield* now
  const until = startedAt + millis
  let closedAt = Number.POSITIVE_INFINITY

  const stream = Effect.gen(function* () {
    let first = true
    // Each stream sends at least once, however short its time.
    while (first || (yield* now) < until) {
      const answer = yield* request(subject, work.inputTokens, work.outputTokens, ++seed)
      if (answer === null) {
        errors++
        // A fast failure is no fast answer, and must not become a storm.
        yield* Effect.sleep("100 millis")
      } else {
        answers.push(answer)
        if (first) firstArrivals.push(answer.arrivals[0] ?? answer.sentAt)
      }
      first = false
    }
    closedAt = Math.min(closedAt, yield* now)
  })
  yield* Effect.all(
    Array.from({ length: concurrency }, () => stream),
    { concurrency: "unbounded", discard: true }
  )

  const from = Math.max(startedAt, ...firstArrivals)
  const to = Math.max(closedAt, from)
  const samples = answers.map(({ arrivals, usage }) => ({ arrivals, tokens: usage.completion_tokens }))
  const ttft = answers.map(({ arrivals, sentAt }) => (arrivals[0] ?? sentAt) - sentAt)
  const tpot = answers.flatMap(({ arrivals, usage }) => {
    const [first] = arrivals
    const last = arrivals.at(-1)
    return first === undefined || last === undefined || usage.completion_tokens < 2 ? [] : [(last - first) / (usage.completion_tokens - 1)]
  })
  const seconds = (to - from) / 1_000
  const result: BenchmarkStep = {
    concurrency,
    requests: answers.length,
    errors,
    seconds: rounded(seconds),
    ttft_ms_p50: quantile(ttft, 0.5),
    ttft_ms_p90: quantile(ttft, 0.9),
    tpot_ms_p50: quantile(tpot, 0.5),
    tpot_ms_p90: quantile(tpot, 0.9),
    output_tokens_per_s: seconds <= 0 ? 0 : rounded(weightWithin(samples, from, to) / seconds)
  }
  return result
})

/** The benchmark `seatrial-bench`: token ids from a fixed seed, no prefix shared, greedy and streamed, after a warm-up that is thrown away. Errors are counted, never dropped. */
export const runBenchmark = Effect.fn("runBenchmark")(function* (subject: Subject, work: Workload) {
  const most = Math.max(...work.steps.map(({ concurrency }) => concurrency))
  yield* request(subject, work.inputTokens, work.outputTokens, work.seed)
  yield* Effect.forEach(
    Array.from({ length: most }, (_, index) => work.seed + 1_000_000 + index),
    (seed) => request(subject, work.inputTokens, Math.min(8, work.outputTokens), seed),
    { concurrency: "unbounded", discard: true }
  )
  const steps: Array<BenchmarkStep> = []
  for (const [index, step] of work.steps.entries()) steps.push(yield* runStep(subject, work, step, work.seed + (index + 1) * 100_000))
  const benchmark: Benchmark = { suite, suite_version: suiteVersion, input_tokens: work.inputTokens, output_tokens: work.outputTokens, seed: work.seed, steps }
  return benchmark
})
