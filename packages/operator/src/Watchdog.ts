import type { DeploymentId, Phase } from "@seatrial/domain"
import { monotonicMillis } from "@seatrial/domain"
import { Duration, Effect, Option, Schedule, type Scope } from "effect"
import { type Decision, worksOf } from "./decide/Decision.ts"
import { operatorMetrics } from "./metrics.ts"
import { runningWorks } from "./observation/engines.ts"
import type { Observation } from "./observation/Observation.ts"
import type { Work } from "./observation/work.ts"
import type { RunStore } from "./RunStore.ts"

/** A summary of what a pass observed and decided, for the log. */
export interface PassRecord {
  readonly phase: Phase
  /** The phase that the custom resource shows; null if there is none. */
  readonly shownPhase: string | null
  readonly pod: { readonly uid: string; readonly ready: boolean; readonly scheduled: boolean; readonly deleting: boolean; readonly lost: string | null } | null
  readonly download: string
  readonly endpoints: number
  /** The background work that ran, and the work that was decided: each kind with the ordinal of its engine. */
  readonly running: ReadonlyArray<string>
  readonly work: ReadonlyArray<string>
  readonly actions: ReadonlyArray<string>
  readonly message: string
  /** Unix milliseconds. */
  readonly at: number
  readonly requeueAt: number | null
}

const nameOf = ({ kind, ordinal }: Work) => `${kind} ${ordinal}`

export const passRecord = (observation: Observation, decision: Decision, at: number): PassRecord => {
  const { fetch, pod, resource, run } = observation
  return {
    phase: run.phase,
    shownPhase: resource?.shownPhase ?? null,
    pod: pod === null ? null : { uid: pod.uid, ready: pod.ready, scheduled: pod.scheduled, deleting: pod.deleting, lost: pod.lost },
    download: fetch._tag,
    endpoints: run.endpoints.length,
    running: runningWorks(observation).map(nameOf),
    work: worksOf(decision).map(nameOf),
    actions: decision.actions.map(({ _tag }) => _tag),
    message: decision.message,
    at,
    requeueAt: decision.requeueAt
  }
}

/** Detects runs whose next pass was lost: it was due, but nothing requested it. */
export interface Watchdog extends RunStore {
  /** Stores the summary of the latest pass over the run. */
  readonly record: (id: DeploymentId, pass: PassRecord) => void
  /** A pass has ended, and the next one is due after that time; none if no pass is due any more. */
  readonly expect: (id: DeploymentId, delay: Option.Option<Duration.Duration>) => Effect.Effect<void>
}

export interface WatchdogOptions {
  /** Whether a pass over the run is in progress, about to begin, or scheduled for later. */
  readonly isScheduled: (id: DeploymentId) => Effect.Effect<boolean>
  /** Requests a pass over the run. */
  readonly enqueue: (id: DeploymentId) => Effect.Effect<void>
}

interface Expectation {
  /** Monotonic milliseconds; infinity until the first pass has ended. */
  dueAt: number
  pass: PassRecord | null
}

/** How late a pass may be, and the interval of the watchdog, milliseconds. */
const patience = 60_000

/**
 * Once a minute until the scope closes, compares the passes that are due with the work queue. If a pass is more than
 * one minute late and the queue does not contain its run, the run is enqueued, counted and logged with the summary of
 * its last pass.
 */
export const makeWatchdog = Effect.fnUntraced(function* ({ enqueue, isScheduled }: WatchdogOptions): Effect.fn.Return<Watchdog, never, Scope.Scope> {
  const expectations = new Map<DeploymentId, Expectation>()
  const expectationOf = (id: DeploymentId): Expectation => {
    const known = expectations.get(id)
    if (known !== undefined) return known
    const expectation: Expectation = { dueAt: Number.POSITIVE_INFINITY, pass: null }
    expectations.set(id, expectation)
    return expectation
  }

  const forget = (id: DeploymentId) => Effect.sync(() => void expectations.delete(id))

  const recover = Effect.fnUntraced(function* (id: DeploymentId, { dueAt, pass }: Expectation, now: number) {
    yield* operatorMetrics.lostWakeUps.update({ phase: pass?.phase ?? "unknown" }, 1)
    const late = Math.round((now - dueAt) / 1_000)
    yield* Effect.logWarning(`the pass over ${id} is ${late} s overdue and was not queued; it is enqueued now. Its last pass:`, pass).pipe(
      Effect.annotateLogs({ deployment: id })
    )
    yield* enqueue(id)
  })

  const isLost = Effect.fnUntraced(function* (id: DeploymentId, { dueAt }: Expectation, now: number) {
    return dueAt + patience < now && !(yield* isScheduled(id))
  })
  const sweep = Effect.gen(function* () {
    const now = yield* monotonicMillis
    const late = yield* Effect.filter([...expectations], ([id, expectation]) => isLost(id, expectation, now))
    if (late.length === 0) return
    // After a suspension of the process all timers are late at once, including this one. The others go first.
    yield* Effect.sleep("1 second")
    for (const [id, expectation] of late) if (yield* isLost(id, expectation, now)) yield* recover(id, expectation, now)
  })
  yield* Effect.forkScoped(Effect.repeat(sweep, Schedule.spaced(patience)))

  return {
    record: (id, pass) => {
      expectationOf(id).pass = pass
    },
    expect: (id, delay) =>
      Option.isNone(delay)
        ? forget(id)
        : Effect.map(monotonicMillis, (now) => {
            expectationOf(id).dueAt = now + Duration.toMillis(delay.value)
          }),
    remembers: (id) => expectations.has(id),
    forget
  }
})
