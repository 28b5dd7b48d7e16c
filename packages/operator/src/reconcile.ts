import { type DeploymentId, fromTraceparent, isFinished } from "@seatrial/domain"
import type { KubeClient, KubeError } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Duration, Effect, Option } from "effect"
import { deleteOrphans } from "./apply/deleteOrphans.ts"
import { applyDecision } from "./pass/applyDecision.ts"
import { decideRun } from "./pass/decideRun.ts"
import { keepWork } from "./pass/keepWork.ts"
import type { Reconciler } from "./pass/Reconciler.ts"
import { recordGauges } from "./pass/recordGauges.ts"
import { requeueRelated } from "./pass/requeueRelated.ts"
import { decisionDelay, earliest } from "./pass/requeueTime.ts"
import { showRun } from "./pass/showRun.ts"
import { probedEngines } from "./sentinel/probedEngines.ts"
import type { WorkServices } from "./work/startWork.ts"

type Delay = Option.Option<Duration.Duration>
type PassServices = Runs | KubeClient | WorkServices

/** Result of one step: continue with `run` after a move (null: read it again), or the pass has ended. */
type StepResult = { readonly isMoved: true; readonly run: Run | null } | { readonly isMoved: false; readonly isReleased: boolean; readonly next: Delay }

/** Decides once about a run, applies the decision, requests passes over related runs, and shows the result. */
const step = Effect.fnUntraced(function* (reconciler: Reconciler, run: Run): Effect.fn.Return<StepResult, KubeError, PassServices> {
  const decided = yield* decideRun(reconciler, run)
  const applied = yield* applyDecision(reconciler, decided)
  const releases = applied.refusal === null && decided.decision.actions.some(({ _tag }) => _tag === "Release")
  yield* recordGauges(reconciler, decided, releases || decided.observation.released)
  yield* keepWork(reconciler, decided)
  yield* reconciler.memory.sentinels.follow(run, probedEngines(decided))
  yield* requeueRelated(reconciler, decided, applied)
  if (applied.isMoved) return { isMoved: true, run: applied.run }
  const delays = yield* showRun(reconciler, decided, applied)
  return { isMoved: false, isReleased: releases, next: earliest(decisionDelay(decided, applied), ...delays) }
})

/** How a pass ended. */
type PassEnd =
  /** Postgres does not contain the run. */
  | { readonly state: "gone" }
  /** The cluster holds no objects of the run, and Postgres knows that. */
  | { readonly state: "released"; readonly next: Delay }
  | { readonly state: "open"; readonly next: Delay; readonly isFinished: boolean }

/** More moves than a run can make in one pass. */
const mostMoves = 30

/** After a write that changed nothing: another operator leads, and this one will learn that soon. */
const supersededPause = Option.some(Duration.seconds(1))

/** The part of a run that a move changes. */
const stateOf = ({ endpoints, phase, phaseSince, replicas }: Run): string =>
  `${phase} ${phaseSince} ${replicas} ${endpoints.map(({ pod, url }) => `${pod} ${url}`).join()}`

/** Connects the span of the pass with the trace of the run's request. */
const linkTrace = ({ traceparent }: Run) =>
  Effect.map(Effect.option(Effect.currentSpan), (pass) => {
    const links = Option.toArray(fromTraceparent(traceparent)).map((span) => ({ span, attributes: {} }))
    if (Option.isSome(pass)) pass.value.addLinks(links)
  })

/** Reads the run, and takes steps until only another process, or time, can change the answer. */
const runPass = Effect.fnUntraced(function* (reconciler: Reconciler, id: DeploymentId): Effect.fn.Return<PassEnd, KubeError, PassServices> {
  const runs = yield* Runs
  let before: string | null = null
  let known: Run | null = null
  for (let moves = 0; moves < mostMoves; moves++) {
    const row: Option.Option<Run> = known === null ? yield* runs.observe(id) : Option.some(known)
    if (Option.isNone(row)) return { state: "gone" }
    const run: Run = row.value
    if (moves === 0) yield* linkTrace(run)
    if (known === null && before === stateOf(run)) return { state: "open", next: supersededPause, isFinished: isFinished(run.phase) }
    before = stateOf(run)
    const result: StepResult = yield* step(reconciler, run)
    if (!result.isMoved)
      return result.isReleased ? { state: "released", next: result.next } : { state: "open", next: result.next, isFinished: isFinished(run.phase) }
    known = result.run
  }
  return { state: "open", next: Option.some(Duration.zero), isFinished: known !== null && isFinished(known.phase) }
})

/** The longest pause between passes of an unfinished run, so that a lost event delays it no longer than this. */
const mostUnfinished = Option.some(Duration.minutes(10))

/**
 * One pass over one run: reads it, then observes, decides and applies until only another process, or time, can change
 * the answer. Returns the delay until the next pass; none only if the run has ended or does not exist.
 */
export const reconcile = Effect.fn("reconcile")(function* (reconciler: Reconciler, id: DeploymentId) {
  const { cluster, memory } = reconciler
  const end = yield* runPass(reconciler, id)
  if (end.state !== "open") yield* memory.forget(id)
  if (end.state === "released") memory.released.add(id)
  const next = end.state === "gone" ? yield* deleteOrphans(cluster, id) : end.next
  const due = end.state === "open" && !end.isFinished ? earliest(next, mostUnfinished) : next
  yield* memory.watchdog.expect(id, due)
  return due
})
