import { type DeploymentId, fromTraceparent, isFinished } from "@seatrial/domain"
import type { KubeClient, KubeError } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Clock, Duration, Effect, Option } from "effect"
import { applyActions } from "./apply/apply.ts"
import { mirror, type Shown } from "./apply/mirror.ts"
import { queueOf } from "./apply/queueOf.ts"
import { withoutRun } from "./apply/withoutRun.ts"
import { decide } from "./decide/decide.ts"
import { isIdle, isServed } from "./decide/idle.ts"
import type { Followers } from "./gather/Followers.ts"
import { type GatherFrom, gather } from "./gather/gather.ts"
import type { OperatorSettings } from "./OperatorSettings.ts"
import type { PhaseCounts } from "./phaseCounts.ts"
import type { StartWork, WorkServices } from "./work/startWork.ts"

export interface Reconciler extends GatherFrom {
  readonly settings: OperatorSettings
  readonly phases: PhaseCounts
  readonly shown: Shown
  /** What the latest pass over a run saw, where it then wrote what should have changed that; see `stateOf`. */
  readonly tried: Map<DeploymentId, string>
  readonly followers: Followers
  /** Asks for a pass over another run. */
  readonly look: (id: DeploymentId) => Effect.Effect<void>
  readonly start: StartWork
}

/** After a write that changes what the next decision sees. */
const atOnce = Option.some(Duration.zero)
/** After the API server refused an object; somebody has to change something first. */
const later = Option.some(Duration.seconds(10))

/** What `moves` change of a run. */
const stateOf = ({ endpoints, phase, phaseSince }: Run): string => `${phase} ${phaseSince} ${endpoints.map(({ pod, url }) => `${pod} ${url}`).join()}`
/** After a write that changed nothing: another operator leads by now, which this one will hear of. */
const unmoved = Option.some(Duration.seconds(1))

const isRefused = (error: KubeError) => error.reason === "Invalid" || error.reason === "Denied" || error.reason === "NotFound"

/** One pass over one run: reads the world, decides, and applies. The time after which to look again, if time alone may change the answer. */
export const reconcile = Effect.fn("reconcile")(function* (
  reconciler: Reconciler,
  id: DeploymentId
): Effect.fn.Return<Option.Option<Duration.Duration>, KubeError, Runs | KubeClient | WorkServices> {
  const { background, followers, look, phases, pool, released, settings, shown, start, tried, withdrawn } = reconciler
  const runs = yield* Runs
  const found = yield* runs.observe(id)
  if (Option.isNone(found)) {
    pool.forget(id)
    withdrawn.delete(id)
    shown.delete(id)
    tried.delete(id)
    yield* phases.note(id, null)
    yield* background.forget(id)
    return yield* withoutRun(reconciler.cluster, id)
  }
  const run = found.value
  followers.note(run)
  const origin = Option.toArray(fromTraceparent(run.traceparent))
  const pass = yield* Effect.option(Effect.currentSpan)
  if (Option.isSome(pass)) pass.value.addLinks(origin.map((span) => ({ span, attributes: {} })))
  const gathered = yield* gather(reconciler, run)
  const now = yield* Clock.currentTimeMillis

  // Without a pause in between, so that no other run is let through on the same GPUs.
  const seen = gathered.observe()
  const decision = decide(seen, now)
  const entered = decision.actions.findLast((action) => action._tag === "Enter")
  const idle = isIdle(seen, now)
  // At once: a pass that fails after this is repeated, and then nothing changes here any more.
  if (pool.note(run, entered?._tag === "Enter" ? entered.to : run.phase, idle)) yield* Effect.forEach(pool.queued(), look, { discard: true })

  const moves = decision.actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate" || _tag === "Publish")
  const told = { organization: run.orgSlug, phase: run.phase }
  const refused = yield* applyActions(gathered, decision.actions, settings).pipe(
    Effect.annotateLogs(told),
    Effect.as(null),
    Effect.catchIf(isRefused, (error) => Effect.as(Effect.logWarning(`the API server refuses an object of ${id}: ${error.message}`), error.message))
  )
  const state = moves && refused === null ? stateOf(run) : null
  const stays = state !== null && tried.get(id) === state
  if (state === null) tried.delete(id)
  else tried.set(id, state)
  const moved = moves && !stays
  if (decision.actions.some(({ _tag }) => _tag === "Release")) {
    // Forgetting them only costs a write that changes nothing.
    if (released.size >= 10_000) released.clear()
    released.add(id)
    shown.delete(id)
    yield* background.forget(id)
  }
  const serves = run.phase === "activated" && run.revision?.status === "active" && !run.modelDisabled && !run.modelDeleted
  yield* phases.note(id, released.has(id) ? null : run.phase, serves && !idle && seen.pod?.ready !== true)
  const context = yield* Effect.context<WorkServices>()
  const { work } = decision
  const begun = work === null ? Effect.void : Effect.suspend(() => start(gathered, seen, work))
  const traced = origin.reduce((effect, span) => Effect.withParentSpan(effect, span), begun)
  yield* Effect.annotateLogs(background.want(id, work, Effect.provideContext(traced, context)), told)
  if (isFinished(run.phase)) yield* Effect.forEach(pool.behind(id), look, { discard: true })
  // A pod is told of to the run that it is named after; who reuses it, or has done with it, concerns the other.
  if (run.engineRun === id) yield* Effect.forEach(run.reusedBy, look, { discard: true })
  else if (isFinished(run.phase)) yield* look(run.engineRun)
  // What serves gives its GPUs to the run that replaces it, and has them back where that ends.
  const replaces = run.replaces || (entered?._tag === "Enter" && entered.replaces)
  if (replaces && run.predecessor !== null && (moved || isFinished(run.phase))) yield* look(run.predecessor.run)
  if (run.replacedBy !== null) yield* look(run.replacedBy)
  // Also who waits for the organisation's limit may go on where a run ends that had no pod yet.
  if ((run.phase === "queued" || run.phase === "waiting") && moved) yield* Effect.forEach(pool.queued(), look, { discard: true })
  if (moves && refused === null) return stays ? unmoved : atOnce

  const timed = decision.lookAgainAt === null ? Option.none<Duration.Duration>() : Option.some(Duration.millis(Math.max(0, decision.lookAgainAt - now)))
  const next = refused === null ? timed : later

  const removes = decision.actions.some(({ _tag }) => _tag === "RemoveResource")
  if (gathered.resource !== null && !removes) {
    const message = refused === null ? decision.message : `The cluster refuses an object of the run: ${refused.slice(0, 500)}`
    // What a finished run only reused is another's, but where it serves.
    const own = !isFinished(run.phase) || run.engineRun === id || isServed(seen)
    const input = {
      shown,
      run,
      fetch: seen.fetch,
      pod: own ? seen.pod : null,
      pods: own ? gathered.pods : [],
      node: gathered.node,
      resource: gathered.resource,
      message,
      idle,
      classGone: seen.podClass === null,
      now
    }
    const again = yield* mirror({ ...input, queue: queueOf(seen, message) })
    if (Option.isSome(again)) return Option.some(Option.match(next, { onNone: () => again.value, onSome: (due) => Duration.min(due, again.value) }))
  }
  return next
})
