import { join } from "node:path"
import type { BenchmarkStep } from "@seatrial/domain"
import { runBenchmark, workload } from "@seatrial/trial"
import { Effect } from "effect"
import { type Benchmark, missesGoals } from "./Benchmark.ts"
import { table } from "./figures.ts"
import { startProgram } from "./Program.ts"

const context = 8_192
const vocabSize = 32_000
/** Seconds of the benchmark: a full workload with half of its times. */
const budget = 150
/** Maximum relative error of a figure. */
const mostOff = 0.02

interface Schedule {
  readonly name: string
  readonly firstMillis: number
  readonly gapMillis: number
  readonly tokensPerChunk: number
}
const schedules: ReadonlyArray<Schedule> = [
  { name: "a token every 10 ms", firstMillis: 200, gapMillis: 10, tokensPerChunk: 1 },
  { name: "four tokens every 40 ms", firstMillis: 200, gapMillis: 40, tokensPerChunk: 4 }
]
const atOnce: Schedule = { name: "at once", firstMillis: 0, gapMillis: 0, tokensPerChunk: 1 }

/** Runs the trial's benchmark against an engine with the given schedule. */
const measured = Effect.fnUntraced(function* (schedule: Schedule, seconds: number) {
  const engine = yield* startProgram({
    name: schedule.name,
    file: join(import.meta.dirname, "schedule/main.ts"),
    environment: (port) => ({
      PORT: String(port),
      FIRST_MILLIS: String(schedule.firstMillis),
      GAP_MILLIS: String(schedule.gapMillis),
      TOKENS_PER_CHUNK: String(schedule.tokensPerChunk)
    }),
    readyPath: "/health"
  })
  const key = {
    commit: "none",
    engine_version: "schedule",
    engine_digest: null,
    flags_sha256: "none",
    gpu_pool: "none",
    gpu_count: 1,
    tensor_parallel: 1,
    driver: null
  }
  const work = workload(seconds, context, null, {})
  const subject = { servedName: "schedule", vocabSize }
  return yield* runBenchmark({ subject, url: `http://${engine.host}:${engine.port}`, key, hostClass: "none", simulated: true }, work)
}, Effect.scoped)

/** The expected figures of a schedule with answers of `output` tokens that follow each other immediately. */
const truthOf = ({ firstMillis, gapMillis, tokensPerChunk }: Schedule, output: number, concurrency: number) => {
  const lasts = gapMillis * (Math.ceil(output / tokensPerChunk) - 1)
  return { ttft: firstMillis, tpot: lasts / (output - 1), throughput: (concurrency * output * 1_000) / (firstMillis + lasts) }
}

const off = (found: number | null, truth: number): number => (found === null ? Number.POSITIVE_INFINITY : found / truth - 1)
const percent = (share: number) => `${share < 0 ? "" : "+"}${(100 * share).toFixed(2)}%`
const delayOf = ({ figures }: BenchmarkStep) => figures?.event_loop_delay_ms_p99 ?? Number.POSITIVE_INFINITY

/** Checks the trial's benchmark with engines of known speed, and measures the speed of its load generator. */
export const honesty: Benchmark = {
  name: "honesty",
  title: "The trial's benchmark against known schedules",
  measure: () =>
    Effect.gen(function* () {
      let worst = 0
      let void_ = false
      const rows: Array<ReadonlyArray<string>> = []
      let fastest = 0
      for (const schedule of schedules) {
        const benchmark = yield* measured(schedule, budget)
        for (const step of benchmark.steps) {
          const truth = truthOf(schedule, benchmark.output_tokens, step.concurrency)
          const errors = [off(step.ttft_ms_p50, truth.ttft), off(step.tpot_ms_p50, truth.tpot), off(step.output_tokens_per_s, truth.throughput)] as const
          worst = Math.max(worst, ...errors.map(Math.abs))
          void_ ||= step.figures?.client_limited === true
          fastest = Math.max(fastest, truth.throughput)
          rows.push([
            schedule.name,
            String(step.concurrency),
            String(step.requests),
            `${truth.ttft} ms`,
            `${step.ttft_ms_p50?.toFixed(1)} ms (${percent(errors[0])})`,
            `${truth.tpot.toFixed(3)} ms`,
            `${step.tpot_ms_p50?.toFixed(3)} ms (${percent(errors[1])})`,
            truth.throughput.toFixed(1),
            `${step.output_tokens_per_s.toFixed(1)} (${percent(errors[2])})`,
            `${delayOf(step).toFixed(2)} ms`
          ])
        }
      }
      // An engine without any delay, so that only the load generator and the process of this engine are measured.
      const before = process.cpuUsage()
      const ceiling = yield* measured(atOnce, 60)
      const used = process.cpuUsage(before)
      const top = ceiling.steps.at(-1)
      const rate = top?.output_tokens_per_s ?? 0
      const tokens = ceiling.steps.reduce((sum, { requests }) => sum + requests * ceiling.output_tokens, 0)
      const micros = tokens === 0 ? 0 : (used.user + used.system) / tokens
      const goal = worst <= mostOff && !void_ && rate > fastest
      if (!goal) yield* missesGoals("The benchmark")
      return `The benchmark that a trial runs, in half of its full times (a budget of ${budget} s), against an engine in a separate process that keeps a schedule by the clock: 1,024 tokens in,
256 out. The true values follow from the schedule by the definitions of [the benchmark of a trial](../explanation/trial-benchmark.md); throughput is that of streams that send their next request at once, which a window that begins with
their first tokens and ends with their last overstates by the one pause before the first. The last column is the delay of the load generator's event loops (p99): above
10 ms the figures are void.

**The furthest from the truth is ${percent(worst).replace("+", "")}** (goal: at most 2%).

${table(["schedule", "streams", "answers", "TTFT", "reported (p50)", "a token", "reported (p50)", "tokens/s", "reported", "delay"], rows)}

Against an engine that gives all of an answer at once the generator reads ${Math.round(rate)} tokens/s at ${top?.concurrency} streams, each a chunk of its own: ${(rate / fastest).toFixed(1)} times what the schedules ask of it at
the highest step (goal: more). A token costs it ${micros.toFixed(1)} µs of processor time, of which a core has a million a second; it has a thread for every 16 streams.`
    })
}
