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

/** The records of a load: of a request that was cut, and of which nothing came in all that time, it is an error. */
export const silentAreErrors = ({ closedAt, records }: Pick<LoadSeen, "closedAt" | "records">, drainMillis: number): ReadonlyArray<RequestRecord> =>
  records.map((record) =>
    record.outcome === "unfinished" && record.arrivals.length === 0 && closedAt - record.sentAt >= drainMillis ? { ...record, outcome: "no_token" } : record
  )

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
