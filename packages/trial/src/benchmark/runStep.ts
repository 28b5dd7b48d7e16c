import { type BenchmarkStep, sketchScale } from "@seatrial/domain"
import { Effect } from "effect"
import type { LoadGenerator, LoadSeen, Progress } from "./LoadGenerator.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import { blocksOf, stepFigures } from "./stepFigures.ts"
import type { Workload, WorkloadStep } from "./workload.ts"

/** Whether throughput has been steady so far, over the complete blocks since all streams have their first token. */
const isSteady = ({ arrivals, at, firsts }: Effect.Success<Progress["peek"]>, concurrency: number, blockMillis: number): boolean => {
  if (firsts.length < concurrency) return false
  const record = { stream: 0, sentAt: 0, arrivals, outcome: "unfinished", tokens: 0 }
  return blocksOf([record], { from: Math.max(...firsts), to: at }, blockMillis).steady ?? false
}

/**
 * When a step ends: after its least time and requests, at the latest after its maximum time. It is prolonged once if
 * throughput is not steady.
 */
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

/**
 * Milliseconds within which requests arrive at an engine in any order, because the threads of the generator send at the
 * same time.
 */
const atOnceMillis = 1_000

/**
 * The records of a load. A request that was cut without having received anything is an error if the engine sent nothing
 * to any stream either, or if a later request received its first token long before. Any other request was queued: slow
 * is not broken.
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

/** Runs one step of the workload, and a second time if the generator itself was the limit. */
export const runStep = Effect.fnUntraced(function* (generator: LoadGenerator, work: Workload, step: WorkloadStep, gpus: number) {
  const once = Effect.gen(function* () {
    const { isOver, wasProlonged } = endOf(work, step)
    const load = yield* generator.run({ concurrency: step.concurrency, outputTokens: work.outputTokens, isOver, drainMillis: work.drainMillis })
    const records = silentAreErrors(load, work.drainMillis)
    const { concurrency } = step
    return stepFigures({ ...load, records, concurrency, inputTokens: work.inputTokens, gpus, blockMillis: work.blockMillis, prolonged: wasProlonged() })
  })
  const first: BenchmarkStep = yield* once
  return first.figures?.client_limited === true && work.scale >= sketchScale ? yield* once : first
})
