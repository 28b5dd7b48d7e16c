import { type DeploymentId, fromTraceparent, isFinished, phaseTraits } from "@seatrial/domain"
import type { KubeClient, KubeError } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Clock, Duration, Effect, Option } from "effect"
import { applyActions } from "./apply/apply.ts"
import { deleteOrphans } from "./apply/deleteOrphans.ts"
import { patchStatus, type Shown } from "./apply/patchStatus.ts"
import { progressOf } from "./apply/progressOf.ts"
import { recordProgress } from "./apply/recordProgress.ts"
import type { BenchmarkGauges } from "./benchmarkGauges.ts"
import { withheld } from "./decide/bootCheck.ts"
import type { Action } from "./decide/Decision.ts"
import { decide } from "./decide/decide.ts"
import { fundingReason, isUnpaid } from "./decide/funding.ts"
import { isIdle, isServed } from "./decide/idle.ts"
import { openClasses } from "./decide/placement.ts"
import type { Followers } from "./gather/Followers.ts"
import { type GatherFrom, gather } from "./gather/gather.ts"
import type { HoldKeeper } from "./gpu/keepHolds.ts"
import type { OperatorSettings } from "./OperatorSettings.ts"
import { whichStart } from "./observation/ObservedPod.ts"
import { workAbout } from "./observation/work.ts"
import type { PhaseCounts } from "./phaseCounts.ts"
import { passRecord, type Watchdog } from "./Watchdog.ts"
import type { Background } from "./work/Background.ts"
import type { StartWork, WorkServices } from "./work/startWork.ts"

export interface Reconciler extends GatherFrom {
  readonly settings: OperatorSettings
  readonly background: Background
  readonly phases: PhaseCounts
  readonly benchmarks: BenchmarkGauges
  readonly shown: Shown
  readonly recordHold: HoldKeeper["record"]
  readonly followers: Followers
  /** Requests a pass over another run. */
  readonly enqueue: (id: DeploymentId) => Effect.Effect<void>
  /** Runs that wait for a pass. */
  readonly backlog: () => number
  readonly start: StartWork
  readonly watchdog: Watchdog
}

/** After the API server refused an object, someone must change something first. */
const later = Option.some(Duration.seconds(10))

/** If a serving run has no object, no event reports when one is allowed again. */
const muchLater = Duration.minutes(1)

/** The part of a run that a move changes. */
const stateOf = ({ endpoints, phase, phaseSince }: Run): string => `${phase} ${phaseSince} ${endpoints.map(({ pod, url }) => `${pod} ${url}`).join()}`
/** After a write that changed nothing: another operator leads, and this one will learn that soon. */
const unmoved = Option.some(Duration.seconds(1))
/** Actions that change a run's row. */
const moving: ReadonlySet<Action["_tag"]> = new Set(["Enter", "Activate", "Publish", "RecordEngineImage"])
/** More moves than a run can make in one pass. */
const mostMoves = 30

const isRefused = (error: KubeError) => error.reason === "Invalid" || error.reason === "Denied" || error.reason === "NotFound"

/** Result of one step: run again after `next`, or continue with `run` after a move (null: read it again). */
type StepResult = { readonly moved: false; readonly next: Option.Option<Duration.Duration> } | { readonly moved: true; readonly run: Run | null }

/** The earliest of several delays. */
const earliest = (...dues: ReadonlyArray<Option.Option<Duration.Duration>>): Option.Option<Duration.Duration> =>
  Option.reduceCompact(dues, Option.none<Duration.Duration>(), (first, due) =>
    Option.some(Option.match(first, { onNone: () => due, onSome: (other) => Duration.min(other, due) }))
  )

/** Decides once about a run, and applies the decision. */
const step = Effect.fnUntraced(function* (reconciler: Reconciler, run: Run): Effect.fn.Return<StepResult, KubeError, Runs | KubeClient | WorkServices> {
  const { background, backlog, benchmarks, followers, enqueue, phases, pool, released, shown, start, watchdog } = reconciler
  const { id } = run
  followers.note(run)
  const origin = Option.toArray(fromTraceparent(run.traceparent))
  const gathered = yield* gather(reconciler, run)
  const now = yield* Clock.currentTimeMillis

  // No yield between this and `note` below, so that no other run is granted the same GPUs.
  const observation = gathered.observe()
  const decision = decide(observation, now)
  watchdog.record(id, passRecord(observation, decision, now))
  const entered = decision.actions.findLast((action) => action._tag === "Enter")
  const unfunded = fundingReason(observation, now)
  const idle = isIdle(observation, now) || (isServed(observation) && isUnpaid(observation, now))
  // At once: if the pass fails after this and is repeated, nothing changes here any more.
  const enters = entered?._tag === "Enter" ? entered : null
  if (pool.note(run, enters?.to ?? run.phase, idle, { plan: enters?.plan, open: openClasses(observation), isUnfunded: observation.funding !== null }))
    yield* Effect.forEach(pool.queued(), enqueue, { discard: true })

  const moves = decision.actions.some(({ _tag }) => moving.has(_tag))
  const labels = { organization: run.orgSlug, phase: run.phase }
  if (run.phase === "activated" && unfunded !== null && decision.actions.some(({ _tag }) => _tag === "RemovePod"))
    yield* Effect.logWarning(`the engine of ${id} releases its GPUs: ${decision.message}`).pipe(Effect.annotateLogs({ ...labels, reason: unfunded }))
  const applied = yield* applyActions(reconciler, gathered, decision.actions).pipe(
    Effect.annotateLogs(labels),
    Effect.catchIf(isRefused, (error) => Effect.as(Effect.logWarning(`the API server refused an object of ${id}: ${error.message}`), error.message))
  )
  const refused = typeof applied === "string" ? applied : null
  const after = typeof applied === "string" ? null : applied.run
  if (decision.actions.some(({ _tag }) => _tag === "Release")) {
    // Forgetting them costs only a write that changes nothing.
    if (released.size >= 10_000) released.clear()
    released.add(id)
    shown.delete(id)
    reconciler.bootVerdicts.delete(id)
    reconciler.futureTimes.delete(id)
    yield* background.forget(id)
  }
  const serves = run.phase === "activated" && run.revision?.status === "active" && !run.modelDisabled && !run.modelDeleted
  yield* phases.note(id, released.has(id) ? null : run.phase, serves && !idle && (observation.pod?.ready !== true || withheld(observation) !== null))
  yield* benchmarks.note(run, serves)
  const { work } = decision
  if (work === null) yield* background.want(id, null, Effect.void)
  else {
    const context = yield* Effect.context<WorkServices>()
    const begun = Effect.suspend(() => start(gathered, observation, work))
    const traced = origin.reduce((effect, span) => Effect.withParentSpan(effect, span), begun)
    const wanted = { kind: work, about: workAbout(observation, work), with: work === "screening" ? "" : whichStart(observation.pod) }
    yield* Effect.annotateLogs(background.want(id, wanted, Effect.provideContext(traced, context)), labels)
  }
  if (isFinished(run.phase)) yield* Effect.forEach(pool.behind(id), enqueue, { discard: true })
  // A pod triggers passes of the run that it is named after. Runs that reuse it, or had reused it, must be enqueued
  // here.
  if (run.engineRun === id) yield* Effect.forEach(run.reusedBy, enqueue, { discard: true })
  else if (isFinished(run.phase)) yield* enqueue(run.engineRun)
  const moved = moves && refused === null
  // The serving revision gives its GPUs to the run that replaces it, and gets them back when that run ends.
  const replaces = run.replaces || (entered?._tag === "Enter" && entered.replaces)
  if (replaces && run.predecessor !== null && (moved || isFinished(run.phase))) yield* enqueue(run.predecessor.run)
  if (run.replacedBy !== null) yield* enqueue(run.replacedBy)
  // When a run without a pod ends, runs that wait for the organization's limit may continue too.
  if (phaseTraits[run.phase].awaitsGpus && moved) yield* Effect.forEach(pool.queued(), enqueue, { discard: true })
  if (moved) return { moved: true, run: after }

  const timed = decision.requeueAt === null ? Option.none<Duration.Duration>() : Option.some(Duration.millis(Math.max(0, decision.requeueAt - now)))
  const sooner = (due: Duration.Duration) => Option.some(Option.match(timed, { onNone: () => due, onSome: (other) => Duration.min(other, due) }))
  const unshown = typeof applied !== "string" && applied.resource === null && decision.actions.some(({ _tag }) => _tag === "EnsureResource")
  const next = refused !== null ? later : unshown ? sooner(muchLater) : timed

  const removes = decision.actions.some(({ _tag }) => _tag === "RemoveResource")
  const resource = typeof applied === "string" ? gathered.resource : applied.resource
  const publicMessage =
    refused === null ? (decision.publicMessage ?? decision.message) : "The cluster refuses an object of the run. Its operator has to change that."
  const progress = progressOf(observation, publicMessage)
  const again = [yield* recordProgress({ run, progress, backlog: backlog(), now })]
  if (resource !== null && !removes) {
    const message = refused === null ? decision.message : `The cluster refuses an object of the run: ${refused.slice(0, 500)}`
    // The engine of a finished run that only reused it belongs to another run, unless this run serves.
    const own = !isFinished(run.phase) || run.engineRun === id || isServed(observation)
    const input = {
      shown,
      backlog: backlog(),
      run,
      fetch: observation.fetch,
      pod: own ? observation.pod : null,
      pods: own ? gathered.pods : [],
      node: gathered.node,
      progress,
      resource,
      message,
      idle,
      unfunded,
      withheld: withheld(observation),
      classGone: observation.podClass === null,
      now
    }
    again.push(yield* patchStatus(input))
  }
  return { moved: false, next: earliest(next, ...again) }
})

/** The longest pause between passes of an unfinished run, so that a lost event delays it no longer than this. */
const mostUnfinished = Duration.minutes(10)

/** See `reconcile`. Also returns the last run that the pass read; null if there is none. */
const passOver = Effect.fnUntraced(function* (
  reconciler: Reconciler,
  id: DeploymentId
): Effect.fn.Return<{ readonly run: Run | null; readonly next: Option.Option<Duration.Duration> }, KubeError, Runs | KubeClient | WorkServices> {
  const { background, benchmarks, bootVerdicts, mergedAnswers, phases, pool, shown, withdrawn } = reconciler
  const runs = yield* Runs
  const pass = yield* Effect.option(Effect.currentSpan)
  let before: string | null = null
  let known: Run | null = null
  for (let moves = 0; moves < mostMoves; moves++) {
    const row: Option.Option<Run> = known === null ? yield* runs.observe(id) : Option.some(known)
    if (Option.isNone(row)) {
      pool.forget(id)
      withdrawn.delete(id)
      mergedAnswers.delete(id)
      bootVerdicts.delete(id)
      reconciler.futureTimes.delete(id)
      shown.delete(id)
      yield* phases.note(id, null)
      yield* benchmarks.forget(id)
      yield* background.forget(id)
      return { run: null, next: yield* deleteOrphans(reconciler.cluster, id) }
    }
    const run: Run = row.value
    if (moves === 0 && Option.isSome(pass)) pass.value.addLinks(Option.toArray(fromTraceparent(run.traceparent)).map((span) => ({ span, attributes: {} })))
    if (known === null && before === stateOf(run)) return { run, next: unmoved }
    before = stateOf(run)
    const result: StepResult = yield* step(reconciler, run)
    if (!result.moved) return { run, next: result.next }
    known = result.run
  }
  return { run: known, next: Option.some(Duration.zero) }
})

/**
 * One pass over one run: reads it, then observes, decides and applies until only another process, or time, can change
 * the answer. Returns the delay until the next pass; none only if the run has ended or does not exist.
 */
export const reconcile = Effect.fn("reconcile")(function* (reconciler: Reconciler, id: DeploymentId) {
  const { watchdog } = reconciler
  const { next, run } = yield* passOver(reconciler, id)
  const due =
    run === null || isFinished(run.phase)
      ? next
      : Option.some(Option.match(next, { onNone: () => mostUnfinished, onSome: (delay) => Duration.min(delay, mostUnfinished) }))
  if (Option.isSome(due)) yield* watchdog.expect(id, due.value)
  else watchdog.forget(id)
  return due
})
