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

/** The evaluations of the starts, and the names of those that the arithmetic does not understand. */
const evaluateAll = Effect.fnUntraced(function* (starts: ReadonlyArray<Start>, models: Readonly<Record<string, ModelFacts>>) {
  const evaluations: Array<Evaluation> = []
  const notUnderstood: Array<string> = []
  for (const start of starts) {
    const facts = models[start.model]
    if (facts === undefined) return yield* new BenchError({ message: `The facts of ${start.model} are missing.` })
    try {
      evaluations.push(evaluate(start, facts))
    } catch (problem) {
      notUnderstood.push(`${start.id} (${problem instanceof Error ? problem.message : String(problem)})`)
    }
  }
  return { evaluations, notUnderstood }
})

/** Coverage and verdicts in words. */
const summary = (evaluations: ReadonlyArray<Evaluation>, notUnderstood: ReadonlyArray<string>): string => {
  const all = coverage(evaluations)
  const failed = evaluations.filter((evaluation) => evaluation.failed).length
  return `${all.inside} of ${all.starts} inside** (goal: nine in ten); the furthest outside by ${percent(all.furthest)} of the pool (goal: at most 10%); the median width is ${percent(all.width)} of the
pool (goal: at most 15%); ${all.failedCalledFits} of ${failed} that failed for memory are called \`fits\` (goal: none); ${all.startedCalledTight} of ${evaluations.length - failed} that started are called \`tight\`.${notUnderstood.length === 0 ? "" : ` Not understood: ${notUnderstood.join("; ")}.`}`
}

const startRow = ({ failed, measured, pool, start, verdict }: Evaluation): ReadonlyArray<string> => [
  `${start.id} ${start.model}`,
  start.gpu,
  `${start.tp}${(start.pp ?? 1) > 1 ? ` in each of ${start.pp} stages` : ""}`,
  `${start.engine === "sglang" ? "SGLang" : "vLLM"} ${start.engine_version ?? "of an unknown version"}`,
  `${size(pool.low)} to ${size(pool.high)}`,
  measured === null ? "unknown" : size(measured),
  measured === null ? "" : measured < pool.low ? "below" : measured > pool.high ? "above" : "inside",
  failed ? `${verdict}; did not start` : verdict
]

const startTable = (evaluations: ReadonlyArray<Evaluation>) =>
  table(["start", "card", "GPUs", "engine", "estimated", "measured", "", "verdict"], evaluations.map(startRow))

/** Compares measured starts with the estimates of the fit. */
export const measuredStarts: Benchmark = {
  name: "fit",
  title: "The fit against measured starts",
  measure: () =>
    Effect.gen(function* () {
      const models = decodeModels(yield* json(process.env.BENCH_FIT_MODELS ?? join(folder, "models.json")))
      const fitted = yield* evaluateAll(decodeStarts(yield* json(process.env.BENCH_FIT_STARTS ?? join(folder, "starts.json"))), models)
      const heldOut = yield* evaluateAll(decodeStarts(yield* json(join(folder, "heldOut.json"))), decodeModels(yield* json(join(folder, "models.json"))))
      const meetsGoals = [fitted, heldOut].every(({ evaluations, notUnderstood }) => {
        const all = coverage(evaluations)
        return notUnderstood.length === 0 && all.inside >= 0.9 * all.starts && all.furthest <= 0.1 && all.failedCalledFits === 0 && all.width <= 0.15
      })
      if (!meetsGoals) yield* missesGoals("The fit")
      const groups = leaveOneOut(fitted.evaluations).map(({ furthest, group, inside, starts, widening }) => [
        group,
        `${inside} of ${starts}`,
        percent(furthest),
        widening.toFixed(1)
      ])
      const ofSglang = [...fitted.evaluations, ...heldOut.evaluations].filter(({ start }) => start.engine === "sglang").length
      return `KV cache of one GPU in GiB: the interval that a preview computes from a model's configuration and tensor bytes, for the engine's version, the GPU and the
limits of that start, compared with what the engine reported. ${ofSglang === 0 ? "No start is of SGLang: its arithmetic is compared with no measurement" : `Of SGLang are ${ofSglang} starts, computed by SGLang's arithmetic`}. Starts and models are in \`test/load/fit/\`, each with its public source; other files are read from
\`BENCH_FIT_STARTS\` and \`BENCH_FIT_MODELS\`. If a source does not name a version, a GPU's memory or a limit, the interval covers all possible values.

**Held out: ${summary(heldOut.evaluations, heldOut.notUnderstood)} These starts were
added after the arithmetic was complete, and no constant changed after that. They are of one card and one series of measurements, which the other starts contain too.

${startTable(heldOut.evaluations)}

**In the sample: ${summary(fitted.evaluations, fitted.notUnderstood)} People chose the constants
of the arithmetic with these starts in view. So the figure shows that the intervals cover what they were fitted to, and not how they cover other starts.

${startTable(fitted.evaluations)}

Each group of sources in the sample judged by intervals only as wide as nine in ten of all the other groups need (1.0 is the interval as it is). Only the width is
fitted without the group. The constants stay, because no program fits them:

${table(["group left out", "inside", "furthest outside", "width"], groups)}`
    })
}
