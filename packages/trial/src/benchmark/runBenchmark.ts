import type { Benchmark, BenchmarkKey, BenchmarkStep } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import type { Subject } from "../Subject.ts"
import { makeLoadGenerator, type Progress } from "./LoadGenerator.ts"
import { runStep, silentAreErrors } from "./runStep.ts"
import { goodputLimits, stepFigures } from "./stepFigures.ts"
import type { Workload } from "./workload.ts"

const suite = "seatrial-bench"
const suiteVersion = 1

/** The settings of a benchmark in addition to the subject of the trial. */
export interface Benchmarked {
  readonly subject: Pick<Subject, "servedName" | "vocabSize">
  /** `http://address:port`. */
  readonly url: string
  readonly key: BenchmarkKey
  readonly hostClass: string
  readonly simulated: boolean
  /** Whether other pods may use the same GPUs during the benchmark; absent: no. */
  readonly shared?: boolean
}

/**
 * Milliseconds after which a benchmark ends without figures: its budget and a fifth more, or the time in which two
 * requests can hang, if that is longer.
 */
const limitMillis = (budgetSeconds: number) => Math.max(1_200 * budgetSeconds, 1_000 * budgetSeconds + 150_000)

/** Number of tokens per answer in the warm-up at full concurrency. */
const warmTokens = 32

/**
 * Runs the benchmark `seatrial-bench`: token ids from a fixed seed, no shared prefix, greedy and streamed, after a
 * warm-up whose figures are discarded. Errors are counted, never dropped. Anything that prevents the benchmark from
 * ending is not a fault of the model and is reported as `missing`.
 */
export const runBenchmark = Effect.fn("runBenchmark")(function* ({ hostClass, key, shared = false, simulated, subject, url }: Benchmarked, work: Workload) {
  const startedAt = yield* Clock.currentTimeMillis
  const steps: Array<BenchmarkStep> = []
  const most = Math.max(...work.steps.map(({ concurrency }) => concurrency))
  const measure = Effect.gen(function* () {
    const generator = yield* makeLoadGenerator(url, subject, { inputTokens: work.inputTokens, firstSeed: work.seed, most })
    const warm = { isOver: () => Effect.succeed(false), drainMillis: 0, perStream: 1 }
    const longest = Math.max(...work.steps.map(({ mostMillis }) => mostMillis))
    const bounded = { ...warm, isOver: ({ elapsed }: Progress) => Effect.succeed(elapsed >= longest), drainMillis: work.drainMillis }
    const alone = generator.run({ ...bounded, concurrency: 1, outputTokens: work.outputTokens })
    const first = yield* alone
    const cut = first.records.some(({ outcome }) => outcome === "unfinished")
    const load = cut ? first : yield* alone
    const judged = silentAreErrors(load, work.drainMillis)
    const records = cut ? judged : [...first.records, ...judged]
    // Single requests got no answer within the time of a step, so nothing else can be measured.
    if (!records.some(({ outcome }) => outcome === "answered")) {
      const { blockMillis, inputTokens } = work
      steps.push(stepFigures({ ...load, records, concurrency: 1, inputTokens, gpus: key.gpu_count, blockMillis, prolonged: false }))
      return null
    }
    yield* generator.run({ ...warm, concurrency: most, outputTokens: Math.min(warmTokens, work.outputTokens) })
    for (const step of work.steps) steps.push(yield* runStep(generator, work, step, key.gpu_count))
    return steps.some(({ figures }) => figures?.client_limited === true) ? "client_limited" : null
  }).pipe(
    Effect.scoped,
    Effect.catchTag("GeneratorFailed", ({ message }) => Effect.as(Effect.logWarning(`the load generator failed: ${message}`), "generator_failed" as const)),
    Effect.timeoutOrElse({ duration: limitMillis(work.budgetSeconds), orElse: () => Effect.succeed("time_limit" as const) })
  )
  const missing = yield* measure
  const benchmark: Benchmark = {
    suite,
    suite_version: suiteVersion,
    input_tokens: work.inputTokens,
    output_tokens: work.outputTokens,
    seed: work.seed,
    steps,
    key,
    host_class: hostClass,
    simulated,
    shared,
    budget_seconds: work.budgetSeconds,
    scale: work.scale,
    goodput_limits: goodputLimits,
    started_at: startedAt,
    ended_at: yield* Clock.currentTimeMillis,
    ...(missing === null ? {} : { missing })
  }
  return benchmark
})
