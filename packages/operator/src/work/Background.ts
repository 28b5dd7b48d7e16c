import type { DeploymentId } from "@seatrial/domain"
import { ProcessEnded } from "@seatrial/trial"
import { Cause, Clock, Effect, Exit, FiberMap, Option, Predicate, type Scope } from "effect"
import type { WorkEnded, WorkKind } from "../decide/Observation.ts"
import { operatorMetrics } from "../metrics.ts"
import { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

export interface Background {
  /** Whether something runs for the run and with which start of its engine that was begun, and how the last that could not record a result ended. */
  readonly seen: (id: DeploymentId) => Effect.Effect<{ readonly running: WorkKind | null; readonly with: string; readonly ended: WorkEnded | null }>
  /** From now on this work and no other runs for the run; null: none. What runs already goes on, but where its engine has started again. */
  readonly want: (id: DeploymentId, work: Wanted | null, start: Effect.Effect<void, WorkRefused | WorkUnavailable>) => Effect.Effect<void>
  readonly forget: (id: DeploymentId) => Effect.Effect<void>
}

/** `about`: what its tries are counted for. `with`: which start of the engine it is done to. */
interface Wanted extends Pick<WorkEnded, "kind" | "about"> {
  readonly with: string
}

interface Entry {
  running: WorkKind | null
  /** Which start of the engine what runs is done to. */
  readonly with: string
  ended: WorkEnded | null
  /** When what runs was begun, Unix milliseconds. */
  begunAt: number
}

type Ending = Pick<WorkEnded, "failure" | "message" | "byRepository" | "isEngineError">

const failureOf = (cause: Cause.Cause<WorkRefused | WorkUnavailable>): Ending => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error instanceof WorkRefused) return { failure: error.failure, message: error.failure.text, byRepository: false }
  if (error instanceof WorkUnavailable)
    return { failure: null, message: error.message, byRepository: false, ...(error.isEngineError === true ? { isEngineError: true } : {}) }
  const [ended] = cause.reasons.flatMap((reason) => (Cause.isDieReason(reason) && reason.defect instanceof ProcessEnded ? [reason.defect] : []))
  return { failure: null, message: ended?.message ?? "An internal fault.", byRepository: Predicate.isNotNullish(ended?.part) }
}

const outcomeOf = (exit: Exit.Exit<void, WorkRefused | WorkUnavailable>): "done" | "refused" | "unavailable" | "fault" => {
  if (Exit.isSuccess(exit)) return "done"
  if (!Cause.hasFails(exit.cause)) return "fault"
  return failureOf(exit.cause).failure === null ? "unavailable" : "refused"
}

/** Long work beside the reconciler: at most one fibre a run, of the scope that made this; its result is seen by the next look. `done` is told whenever one ends. */
export const makeBackground = Effect.fnUntraced(function* (done: (id: DeploymentId) => Effect.Effect<void>): Effect.fn.Return<Background, never, Scope.Scope> {
  const fibres = yield* FiberMap.make<DeploymentId>()
  const entries = new Map<DeploymentId, Entry>()
  // Before the work itself is interrupted, so that it does not count as ended.
  yield* Effect.addFinalizer(() => Effect.sync(() => entries.clear()))

  const finish = (id: DeploymentId, entry: Entry, { about, kind }: Pick<WorkEnded, "kind" | "about">, exit: Exit.Exit<void, WorkRefused | WorkUnavailable>) =>
    Effect.gen(function* () {
      // Another work took its place, or it was stopped on purpose.
      if (entries.get(id) !== entry || entry.running !== kind) return
      entry.running = null
      const at = yield* Clock.currentTimeMillis
      yield* operatorMetrics.backgroundSeconds.update({ kind, outcome: outcomeOf(exit) }, (at - entry.begunAt) / 1_000)
      if (Exit.isSuccess(exit)) entry.ended = null
      else {
        const attempts = (entry.ended?.attempts ?? 0) + 1
        const ending = failureOf(exit.cause)
        entry.ended = { kind, about, attempts, at, ...ending, byRepository: ending.byRepository && (entry.ended?.byRepository ?? true) }
        if (!Cause.hasFails(exit.cause)) yield* Effect.logError(`${kind} of ${id} ended in a fault`, Cause.pretty(exit.cause))
        else if (entry.ended.failure === null) yield* Effect.logWarning(`${kind} of ${id} could not be done (try ${attempts}): ${entry.ended.message}`)
      }
      yield* done(id)
    })

  return {
    seen: (id) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const entry = entries.get(id)
        // As after a clock that was set back: the next try waits no longer for that.
        if (Predicate.isNotNullish(entry?.ended) && entry.ended.at > now) entry.ended = { ...entry.ended, at: now }
        return { running: entry?.running ?? null, with: entry?.with ?? "", ended: entry?.ended ?? null }
      }),
    want: Effect.fnUntraced(function* (id, work, start) {
      const entry = entries.get(id)
      if ((entry?.running ?? null) === (work?.kind ?? null) && (work === null || entry?.with === work.with)) return
      if (Predicate.isNotNullish(entry?.running)) {
        entry.running = null
        yield* FiberMap.remove(fibres, id)
      }
      if (work === null) return
      const begunAt = yield* Clock.currentTimeMillis
      const before = entry?.ended ?? null
      const ended = before?.kind === work.kind && before.about === work.about ? before : null
      const made: Entry = { running: work.kind, with: work.with, ended, begunAt }
      entries.set(id, made)
      yield* FiberMap.run(
        fibres,
        id,
        // Also work that was interrupted by something else than `want` and `forget`: it runs no more, and nothing would begin it again.
        Effect.onExit(start, (exit) => finish(id, made, work, exit))
      )
    }),
    forget: (id) =>
      Effect.andThen(
        Effect.sync(() => entries.delete(id)),
        FiberMap.remove(fibres, id)
      )
  }
})
