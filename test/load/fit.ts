import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { type Benchmark, missesGoals } from "./Benchmark.ts"
import { table } from "./figures.ts"
import { coverage, leaveOneOut } from "./fit/coverage.ts"
import { type Evaluation, evaluate } from "./fit/evaluate.ts"
import { ModelFacts, Start } from "./fit/Start.ts"
import { BenchError } from "./Program.ts"

const folder = join(import.meta.dirname, "fit")
const decodeStarts = Schema.decodeUnknownSync(Schema.Array(Start))
const decodeModels = Schema.decodeUnknownSync(Schema.Record(Schema.String, ModelFacts))

const json = (path: string) => Effect.promise(async (): Promise<unknown> => JSON.parse(await readFile(path, "utf8")))

const percent = (share: number) => `${(100 * share).toFixed(1)}%`
const size = (gib: number) => gib.toFixed(2)

/** Compares measured starts with the estimates of the fit. */
export const measuredStarts: Benchmark = {
  name: "fit",
  title: "The fit against measured starts",
  measure: () =>
    Effect.gen(function* () {
      const starts = decodeStarts(yield* json(process.env.BENCH_FIT_STARTS ?? join(folder, "starts.json")))
      const models = decodeModels(yield* json(process.env.BENCH_FIT_MODELS ?? join(folder, "models.json")))
      const missing = starts.find(({ model }) => models[model] === undefined)
      if (missing !== undefined) return yield* new BenchError({ message: `The facts of ${missing.model} are missing.` })
      const evaluations: Array<Evaluation> = []
      const notUnderstood: Array<string> = []
      for (const start of starts) {
        const facts = models[start.model]
        if (facts === undefined) continue
        try {
          evaluations.push(evaluate(start, facts))
        } catch (problem) {
          notUnderstood.push(`${start.id} (${problem instanceof Error ? problem.message : String(problem)})`)
        }
      }
      const all = coverage(evaluations)
      const rows = evaluations.map(({ failed, measured, pool, start, verdict }) => [
        `${start.id} ${start.model}`,
        start.gpu,
        String(start.tp),
        `${start.engine === "sglang" ? "SGLang" : "vLLM"} ${start.engine_version ?? "of an unknown version"}`,
        `${size(pool.low)} to ${size(pool.high)}`,
        measured === null ? "unknown" : size(measured),
        measured === null ? "" : measured < pool.low ? "below" : measured > pool.high ? "above" : "inside",
        failed ? `${verdict}; did not start` : verdict
      ])
      const groups = leaveOneOut(evaluations).map(({ furthest, group, inside, starts, widening }) => [
        group,
        `${inside} of ${starts}`,
        percent(furthest),
        widening.toFixed(1)
      ])
      const ofSglang = evaluations.filter(({ start }) => start.engine === "sglang").length
      const goal = notUnderstood.length === 0 && all.inside >= 0.9 * all.starts && all.furthest <= 0.1 && all.failedCalledFits === 0 && all.width <= 0.15
      if (!goal) yield* missesGoals("The fit")
      return `KV cache of one GPU in GiB: the interval that a preview computes from a model's configuration and tensor bytes, for the engine's version, the GPU and the
limits of that start, compared with what the engine reported. ${ofSglang === 0 ? "No start is of SGLang: its arithmetic is compared with no measurement" : `Of SGLang are ${ofSglang} starts, computed by SGLang's arithmetic`}. Starts and models are in \`test/load/fit/\`, each with its public source; other files are read from
\`BENCH_FIT_STARTS\` and \`BENCH_FIT_MODELS\`. If a source does not name a version, a GPU's memory or a limit, the interval covers all possible values.

**${all.inside} of ${all.starts} inside** (goal: nine in ten); the furthest outside by ${percent(all.furthest)} of the pool (goal: at most 10%); the median width is ${percent(all.width)} of the
pool (goal: at most 15%); ${all.failedCalledFits} of ${evaluations.filter(({ failed }) => failed).length} that failed for memory are called \`fits\` (goal: none); ${all.startedCalledTight} of ${evaluations.filter(({ failed }) => !failed).length} that started are called \`tight\`.${notUnderstood.length === 0 ? "" : ` Not understood: ${notUnderstood.join("; ")}.`}

${table(["start", "card", "GPUs", "engine", "estimated", "measured", "", "verdict"], rows)}

Each group of sources judged by intervals only as wide as nine in ten of all the other groups need (1.0 is the interval as it is):

${table(["group left out", "inside", "furthest outside", "width"], groups)}`
    })
}
