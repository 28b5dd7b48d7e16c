import { isDeepStrictEqual } from "node:util"
import type { DeploymentId } from "@seatrial/domain"
import type { Decisions, NewDecision, Run } from "@seatrial/store"
import { Cause, Clock, Effect, Latch, Option, Schedule, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import { type NamedDecision, worksOf } from "../decide/Decision.ts"
import { operatorMetrics } from "../metrics.ts"
import { runningWorks } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import type { RunStore } from "../RunStore.ts"
import { applyDelta, deltaOf, isEmptyDelta, type Members } from "./delta.ts"
import { factsOf, type RecordedFacts, toRecord } from "./RecordedObservation.ts"

/** A decision about a run, and what it was made from. */
interface DecidedPass {
  readonly run: Pick<Run, "id" | "orgId">
  readonly observation: Observation
  readonly decision: NamedDecision
  /** Unix milliseconds. */
  readonly now: number
}

export interface DecisionRecorder extends RunStore {
  /**
   * Queues the record of a pass that acts, or that another rule decided than the record before. Never waits. A pass
   * that repeats the record before it is not recorded again.
   */
  readonly record: (pass: DecidedPass) => void
}

export interface RecorderOptions {
  readonly decisions: Decisions["Service"]
  /** Identifies the rules of this operator. */
  readonly build: string
  /** Days to keep the records; 0: nothing is recorded, and earlier records are deleted. */
  readonly keepDays: number
}

/** The last record of a run, from which the next one differs. */
interface LastRecord {
  readonly series: number
  readonly seq: number
  /** When its series began, Unix milliseconds. */
  readonly begunAt: number
  readonly observation: Members
  readonly facts: RecordedFacts | null
  readonly decision: NamedDecision
}

/** The longest time that a series lasts, milliseconds, and its most records. */
const maxSeriesMillis = 86_400_000
const maxSeriesLength = 200
/** Runs whose last record is kept in memory. The next record of another run has its whole observation. */
const maxLastRecords = 256
/** Records, and their characters, that wait to be written. Further ones are dropped. */
const maxWaiting = 2_000
const maxWaitingChars = 16 * 2 ** 20
const maxBatch = 100

const sizeOf = ({ decision, observation }: NewDecision) => decision.length + observation.length

/** Records that wait to be written, in their order. */
const makeQueue = () => {
  const waiting: Array<NewDecision> = []
  const isFilled = Latch.makeUnsafe(false)
  let chars = 0
  let dropped = 0
  return {
    /** False if the record was dropped, because too many wait. */
    offer: (row: NewDecision): boolean => {
      if (waiting.length >= maxWaiting || chars + sizeOf(row) > maxWaitingChars) {
        dropped++
        return false
      }
      chars += sizeOf(row)
      waiting.push(row)
      isFilled.openUnsafe()
      return true
    },
    /** Completes when a record waits. */
    filled: isFilled.await,
    next: (): ReadonlyArray<NewDecision> => waiting.slice(0, maxBatch),
    remove: (count: number) => {
      for (const row of waiting.splice(0, count)) chars -= sizeOf(row)
      if (waiting.length === 0) isFilled.closeUnsafe()
    },
    /** The number of records that were dropped since the last call. */
    takeDropped: (): number => {
      const count = dropped
      dropped = 0
      return count
    }
  }
}

type Queue = ReturnType<typeof makeQueue>

/** The last record of each run, of the runs that were recorded latest. */
const makeLastRecords = () => {
  const last = new Map<DeploymentId, LastRecord>()
  return {
    get: (id: DeploymentId) => last.get(id),
    set: (id: DeploymentId, record: LastRecord) => {
      last.delete(id)
      last.set(id, record)
      const [oldest] = last.size > maxLastRecords ? last.keys() : []
      if (oldest !== undefined) last.delete(oldest)
    },
    has: (id: DeploymentId) => last.has(id),
    delete: (id: DeploymentId) => last.delete(id),
    clear: () => last.clear()
  }
}

const isActing = ({ decision, observation }: DecidedPass): boolean =>
  decision.actions.length > 0 || !isDeepStrictEqual(worksOf(decision), runningWorks(observation))

/** A decision as JSON, without its times and its message. */
const decidedIn = (decision: NamedDecision): string => JSON.stringify([decision.rule, decision.actions, worksOf(decision)])

const isContinued = ({ begunAt, seq }: LastRecord, now: number): boolean => now - begunAt < maxSeriesMillis && seq + 1 < maxSeriesLength

/**
 * The place of the record after another one; after none, the first place of the next series. Series are numbered from
 * `startedAt` (Unix milliseconds), so that they follow those of earlier operators.
 */
const makePlaces = (startedAt: number) => {
  let lastSeries = startedAt
  return (before: LastRecord | null, now: number): Pick<LastRecord, "begunAt" | "seq" | "series"> =>
    before === null ? { series: ++lastSeries, seq: 0, begunAt: now } : { ...before, seq: before.seq + 1 }
}

/** `startedAt`: when this operator took over, Unix milliseconds. */
const makeRecord = (queue: Queue, last: ReturnType<typeof makeLastRecords>, startedAt: number) => {
  const placeAfter = makePlaces(startedAt)
  return (pass: DecidedPass): void => {
    const { decision, now, observation, run } = pass
    const before = last.get(run.id)
    if (!isActing(pass) && (before === undefined || before.decision.rule === decision.rule)) return
    const facts = factsOf(observation.run, before?.facts ?? null)
    const record = toRecord(observation, facts)
    const continued = before !== undefined && isContinued(before, now) ? before : null
    const delta = continued === null ? null : deltaOf(continued.observation, record)
    if (delta !== null && isEmptyDelta(delta) && before !== undefined && decidedIn(before.decision) === decidedIn(decision)) return
    const { begunAt, seq, series } = placeAfter(continued, now)
    // What did not change stays the same instance, so that the garbage collector does not move it again.
    const latest = continued === null || delta === null ? record : applyDelta(continued.observation, delta)
    const isQueued = queue.offer({
      orgId: run.orgId,
      deploymentId: run.id,
      series,
      seq,
      decidedAt: now,
      rule: decision.rule,
      observation: JSON.stringify(delta ?? record),
      decision: JSON.stringify(decision)
    })
    // After a record that was dropped, the next one has the whole observation. A released run is hardly ever decided
    // about.
    if (isQueued && !observation.released) last.set(run.id, { series, seq, begunAt, observation: latest, facts, decision })
    else last.delete(run.id)
  }
}

const countDropped = (reason: "full" | "refused", count: number) => (count === 0 ? Effect.void : operatorMetrics.decisionsDropped.update({ reason }, count))

/** Writes all records that wait. What Postgres refuses is dropped; what it could not take now waits. */
const makeFlush = ({ build, decisions }: RecorderOptions, queue: Queue, forgetAll: () => void) => {
  const isTransient = (cause: Cause.Cause<SqlError.SqlError>) =>
    Cause.hasInterrupts(cause) || Option.exists(Cause.findErrorOption(cause), (error) => error.isRetryable)
  const drop = Effect.fnUntraced(function* (count: number, cause: Cause.Cause<SqlError.SqlError>) {
    queue.remove(count)
    forgetAll()
    yield* countDropped("refused", count)
    yield* Effect.logWarning(`Postgres refused ${count} records of decisions; they were dropped`, cause)
  })
  return Effect.gen(function* () {
    yield* countDropped("full", queue.takeDropped())
    for (let batch = queue.next(); batch.length > 0; batch = queue.next()) {
      const { length } = batch
      const isDone = yield* decisions.record(build, batch).pipe(
        Effect.andThen(operatorMetrics.decisionsRecorded.update({}, length)),
        Effect.andThen(Effect.sync(() => queue.remove(length))),
        Effect.as(true),
        Effect.catchCause((cause) => (isTransient(cause) ? Effect.succeed(false) : Effect.as(drop(length, cause), true)))
      )
      if (!isDone) return
    }
  })
}

/**
 * Deletes old records every hour. Each is kept for at least `keepDays`: a series, which lasts a day, is deleted as a
 * whole.
 */
const removeOld = ({ decisions, keepDays }: RecorderOptions) =>
  decisions.removeOlder(keepDays === 0 ? 0 : keepDays + 1).pipe(
    Effect.catchCause((cause) => Effect.logWarning("Could not delete old records of decisions; retrying in an hour", cause)),
    Effect.repeat(Schedule.spaced("1 hour"))
  )

/**
 * Records why the operator acts. Records are written in the background, in batches, once a second and when the scope
 * closes. They hold no pass up: if Postgres is too slow, they are dropped and counted.
 */
export const makeDecisionRecorder = Effect.fnUntraced(function* (options: RecorderOptions): Effect.fn.Return<DecisionRecorder, never, Scope.Scope> {
  yield* Effect.forkScoped(removeOld(options))
  const last = makeLastRecords()
  const store = { remembers: last.has, forget: (id: DeploymentId) => Effect.sync(() => void last.delete(id)) }
  if (options.keepDays === 0) return { ...store, record: () => {} }
  const queue = makeQueue()
  const flush = makeFlush(options, queue, last.clear)
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
  const write = Effect.gen(function* () {
    yield* queue.filled
    yield* Effect.sleep("1 second")
    yield* flush
  })
  yield* Effect.forkScoped(Effect.forever(write))
  return { ...store, record: makeRecord(queue, last, yield* Clock.currentTimeMillis) }
})
