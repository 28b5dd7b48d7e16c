import type { DeploymentId } from "@seatrial/domain"
import { ProcessEnded } from "@seatrial/trial"
import { Cause, Clock, Effect, Exit, FiberMap, Option, Predicate, type Scope } from "effect"
import { operatorMetrics } from "../metrics.ts"
import type { StartedWork, WorkEnded, WorkKind } from "../observation/work.ts"
import type { RunStore } from "../RunStore.ts"
import { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

export interface Background extends RunStore {
  /**
   * The running work of the run with its engine of that ordinal (absent: the first) and the start of the engine with
   * which it began, and how the last work without a recorded result ended.
   */
  readonly state: (id: DeploymentId, ordinal?: number) => Effect.Effect<StartedWork>
  /**
   * From now on these are the run's only works, at most one for each engine. Running work continues unless its engine
   * has restarted.
   */
  readonly want: (id: DeploymentId, works: ReadonlyArray<Wanted>) => Effect.Effect<void>
}

/**
 * `about`: what the attempts are counted for. `with`: the start of the engine that the work uses. `ordinal`: which of
 * the engines; absent: the first.
 */
interface Wanted extends Pick<WorkEnded, "kind" | "about"> {
  readonly ordinal?: number
  readonly with: string
  readonly start: Effect.Effect<void, WorkRefused | WorkUnavailable>
}

interface Entry {
  running: WorkKind | null
  /** The start of the engine that the running work uses. */
  readonly with: string
  ended: WorkEnded | null
  /** When the running work began, Unix milliseconds. */
  begunAt: number
}

type WorkExit = Exit.Exit<void, WorkRefused | WorkUnavailable>
type Ending = Pick<WorkEnded, "failure" | "message" | "byRepository" | "isEngineError">

const failureOf = (cause: Cause.Cause<WorkRefused | WorkUnavailable>): Ending => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error instanceof WorkRefused) return { failure: error.failure, message: error.failure.text, byRepository: false }
  if (error instanceof WorkUnavailable)
    return { failure: null, message: error.message, byRepository: false, ...(error.isEngineError === true ? { isEngineError: true } : {}) }
  const [ended] = cause.reasons.flatMap((reason) => (Cause.isDieReason(reason) && reason.defect instanceof ProcessEnded ? [reason.defect] : []))
  return { failure: null, message: ended?.message ?? "An internal error.", byRepository: Predicate.isNotNullish(ended?.part) }
}

const outcomeOf = (exit: WorkExit): "done" | "refused" | "unavailable" | "fault" => {
  if (Exit.isSuccess(exit)) return "done"
  if (!Cause.hasFails(exit.cause)) return "fault"
  return failureOf(exit.cause).failure === null ? "unavailable" : "refused"
}

/** How a failed attempt ended. `before`: how the attempt before it ended. */
const failedWork = ({ about, kind }: Wanted, before: WorkEnded | null, cause: Cause.Cause<WorkRefused | WorkUnavailable>, at: number): WorkEnded => {
  const ending = failureOf(cause)
  const attempts = (before?.attempts ?? 0) + 1
  return { kind, about, attempts, at, since: before?.since ?? at, ...ending, byRepository: ending.byRepository && (before?.byRepository ?? true) }
}

/** A refusal is logged when the run fails. */
const logFailure = (id: DeploymentId, ended: WorkEnded | null, exit: WorkExit) => {
  if (ended === null || Exit.isSuccess(exit)) return Effect.void
  const { attempts, failure, kind, message } = ended
  if (!Cause.hasFails(exit.cause)) return Effect.logError(`${kind} of ${id} failed with a defect`, Cause.pretty(exit.cause))
  return failure === null ? Effect.logWarning(`${kind} of ${id} failed on attempt ${attempts}: ${message}`) : Effect.void
}

/**
 * Runs long work outside of the reconciler: at most one fiber for each engine of a run, in the scope of the caller. The
 * next pass reads the result. `done` is called whenever work ends.
 */
export const makeBackground = Effect.fnUntraced(function* (done: (id: DeploymentId) => Effect.Effect<void>): Effect.fn.Return<Background, never, Scope.Scope> {
  const fibres = yield* FiberMap.make<string>()
  const fiberOf = (id: DeploymentId, ordinal: number) => `${id} ${ordinal}`
  /** By run and ordinal of its engine. */
  const entries = new Map<DeploymentId, Map<number, Entry>>()
  // Before the work is interrupted, so that it does not count as ended.
  yield* Effect.addFinalizer(() => Effect.sync(() => entries.clear()))

  const finish = Effect.fnUntraced(function* (id: DeploymentId, entry: Entry, work: Wanted, exit: WorkExit) {
    // Other work replaced it, or it was stopped on purpose.
    if (entries.get(id)?.get(work.ordinal ?? 0) !== entry || entry.running !== work.kind) return
    entry.running = null
    const at = yield* Clock.currentTimeMillis
    yield* operatorMetrics.backgroundSeconds.update({ kind: work.kind, outcome: outcomeOf(exit) }, (at - entry.begunAt) / 1_000)
    entry.ended = Exit.isSuccess(exit) ? null : failedWork(work, entry.ended, exit.cause, at)
    yield* logFailure(id, entry.ended, exit)
    yield* done(id)
  })

  const isRunning = (entry: Entry | undefined, work: Wanted | undefined) =>
    Predicate.isNotNullish(entry?.running) && entry.running === work?.kind && entry.with === work.with

  const stop = Effect.fnUntraced(function* (id: DeploymentId, ordinal: number, entry: Entry) {
    entry.running = null
    yield* FiberMap.remove(fibres, fiberOf(id, ordinal))
  })

  const begin = Effect.fnUntraced(function* (id: DeploymentId, work: Wanted) {
    const { about, kind, ordinal = 0, start } = work
    const begunAt = yield* Clock.currentTimeMillis
    const before = entries.get(id)?.get(ordinal)?.ended ?? null
    const ended = before?.kind === kind && before.about === about ? before : null
    const started: Entry = { running: kind, with: work.with, ended, begunAt }
    entries.set(id, new Map(entries.get(id)).set(ordinal, started))
    yield* FiberMap.run(
      fibres,
      fiberOf(id, ordinal),
      // Also handles work that is interrupted by something other than `want` and `forget`, because nothing else would
      // start it again.
      Effect.onExit(start, (exit) => finish(id, started, work, exit))
    )
  })

  return {
    state: (id, ordinal = 0) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const entry = entries.get(id)?.get(ordinal)
        // If the clock was set back, the next attempt must not wait for the old time.
        if (Predicate.isNotNullish(entry?.ended) && entry.ended.at > now)
          entry.ended = { ...entry.ended, at: now, since: Math.min(entry.ended.since ?? now, now) }
        return { running: entry?.running ?? null, with: entry?.with ?? "", ended: entry?.ended ?? null }
      }),
    want: Effect.fnUntraced(function* (id, works) {
      const workOf = (ordinal: number) => works.find((work) => (work.ordinal ?? 0) === ordinal)
      for (const [ordinal, entry] of entries.get(id) ?? []) if (entry.running !== null && !isRunning(entry, workOf(ordinal))) yield* stop(id, ordinal, entry)
      for (const work of works) if (!isRunning(entries.get(id)?.get(work.ordinal ?? 0), work)) yield* begin(id, work)
    }),
    remembers: (id) => entries.has(id),
    forget: Effect.fnUntraced(function* (id) {
      const ordinals = [...(entries.get(id)?.keys() ?? [])]
      entries.delete(id)
      yield* Effect.forEach(ordinals, (ordinal) => FiberMap.remove(fibres, fiberOf(id, ordinal)), { discard: true })
    })
  }
})
