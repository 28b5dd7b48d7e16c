import { type BenchmarkStep, sketchScale } from "@seatrial/domain"
import { Effect } from "effect"
import type { LoadGenerator, LoadSeen, Progress } from "./LoadGenerator.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import { blocksOf, stepFigures } from "./stepFigures.ts"
import type { Workload, WorkloadStep } from "./workload.ts"

/** Whether throughput so far is steady, as far as can be said: of its whole blocks since all streams have their first token. */
const isSteady = ({ arrivals, at, firsts }: Effect.Success<Progress["peek"]>, concurrency: number, blockMillis: number): boolean => {
  if (firsts.length < concurrency) return false
  const record = { stream: 0, sentAt: 0, arrivals, outcome: "unfinished", tokens: 0 }
  return blocksOf([record], { from: Math.max(...firsts), to: at }, blockMillis).steady ?? false
}

/** When a step ends: after its least time and requests, at the latest after its most time, and once prolonged where it is not steady. */
const endOf = (work: Workload, step: WorkloadStep) => {
  let prolonged = false
  let until: number | null = null
  return {
    wasProlonged: () => prolonged,
    isOver: Effect.fnUntraced(function* ({ elapsed, ended, peek }: Progress) {
      if (until !== null) return elapsed >= until
      const enough = elapsed >= step.leastMillis && ended >= step.leastRequests
      if (!enough && elapsed < step.mostMillis) return false
      if (step.prolongMillis === 0 || isSteady(yield* peek, step.concurrency, work.blockMillis)) return true
      prolonged = true
      until = elapsed + step.prolongMillis
      return false
    })
  }
}

/** What is sent within so long comes to an engine in any order, milliseconds: the threads of the generator send at once. */
const atOnceMillis = 1_000

/**
 * The records of a load: a request that was cut, and of which nothing came in all that time, is an error where the engine said nothing to anybody either, or where one that
 * was sent later has long had its first token. Any other stood in the engine's queue: slow is not broken.
 */
export const silentAreErrors = (
  { closedAt, endedAt, records }: Pick<LoadSeen, "closedAt" | "endedAt" | "records">,
  drainMillis: number
): ReadonlyArray<RequestRecord> => {
  const heardAt = records.reduce((last, { arrivals }) => Math.max(last, arrivals.at(-1) ?? last), Number.NEGATIVE_INFINITY)
  const quiet = endedAt - heardAt >= drainMillis / 2
  const servedSent = records.reduce(
    (last, { arrivals: [first], sentAt }) => (first !== undefined && first <= endedAt - drainMillis ? Math.max(last, sentAt) : last),
    Number.NEGATIVE_INFINITY
  )
  return records.map((record) => {
    const silent = record.outcome === "unfinished" && record.arrivals.length === 0 && closedAt - record.sentAt >= drainMillis
    return silent && (quiet || record.sentAt < servedSent - atOnceMillis) ? { ...record, outcome: "no_token" } : record
  })
}

/** One step of the workload; once more where the generator was its own limit. */
export const runStep = Effect.fnUntraced(function* (generator: LoadGenerator, work: Workload, step: WorkloadStep, gpus: number) {
  const once = Effect.gen(function* () {
    const { isOver, wasProlonged } = endOf(work, step)
    const seen = yield* generator.run({ concurrency: step.concurrency, outputTokens: work.outputTokens, isOver, drainMillis: work.drainMillis })
    const records = silentAreErrors(seen, work.drainMillis)
    const { concurrency } = step
    return stepFigures({ ...seen, records, concurrency, inputTokens: work.inputTokens, gpus, blockMillis: work.blockMillis, prolonged: wasProlonged() })
  })
  const first: BenchmarkStep = yield* once
  return first.figures?.client_limited === true && work.scale >= sketchScale ? yield* once : first
})
