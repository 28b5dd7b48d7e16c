import type { KubeClient } from "@seatrial/kube"
import type { Run, Runs } from "@seatrial/store"
import { Clock, Effect } from "effect"
import type { HttpClient } from "effect/http"
import type { Action, Decision } from "../decide/Decision.ts"
import { decide } from "../decide/decide.ts"
import { fundingReason, isUnpaid } from "../decide/funding.ts"
import { isIdle } from "../decide/idle.ts"
import { openClasses } from "../decide/placement.ts"
import { givesClaimBack } from "../decide/refused.ts"
import { keptEngines } from "../gather/capacity/keptEngines.ts"
import type { NotedChoice } from "../gather/capacity/poolNotes.ts"
import { type Gathered, gather } from "../gather/gather.ts"
import { enginesOf } from "../observation/engines.ts"
import { isServed } from "../observation/isServed.ts"
import type { Observation } from "../observation/Observation.ts"
import type { RunMemory } from "../RunMemory.ts"
import { passRecord } from "../Watchdog.ts"
import type { Reconciler } from "./Reconciler.ts"

/** A decision about a run, and what it was made from. */
export interface DecidedRun {
  readonly run: Run
  readonly gathered: Gathered
  readonly observation: Observation
  readonly decision: Decision
  /** The phase that the run enters; null if it stays. */
  readonly enters: Extract<Action, { readonly _tag: "Enter" }> | null
  /** Whether a serving model has no engine, or gives it back, because it has no requests or no funds. */
  readonly isIdle: boolean
  /** See `fundingReason`. */
  readonly unfunded: string | null
  /** When the decision was made, Unix milliseconds. */
  readonly now: number
}

/** The pods of an earlier revision that get no requests any more. One whose node does not respond frees nothing soon. */
const leavingPods = ({ decision, observation, run }: DecidedRun): ReadonlyArray<string> => {
  if ((run.newer ?? null) === null) return []
  const endpoints = decision.actions.findLast((action) => action._tag === "Publish")?.endpoints ?? run.endpoints
  const present = enginesOf(observation).flatMap(({ alone }) => (alone.pod === null || alone.pod.nodeDownSince !== null ? [] : alone.pod.name))
  return present.filter((name) => !endpoints.some(({ pod }) => pod === name))
}

/** What other runs must know of the engines above the first, and of those that an earlier revision gives up. */
const fleetChoice = (decided: DecidedRun): Pick<NotedChoice, "fleet" | "otherEngines"> => {
  const { decision, isIdle, observation, run } = decided
  const { engines, growth, podClass } = observation
  const leaving = leavingPods(decided)
  if ((engines.length === 0 && leaving.length === 0) || run.engineRun !== run.id) return {}
  const granted = new Set(decision.actions.flatMap((action) => (action._tag === "EnsurePod" ? (action.ordinal ?? 0) : [])))
  const lacksSome = !isIdle && engines.some(({ ordinal, pod }) => pod === null && !granted.has(ordinal))
  const gpus = podClass?.hostClass.gpu_count ?? 0
  const otherEngines = engines.flatMap(({ ordinal, pod }) => (pod !== null || granted.has(ordinal) ? ordinal : []))
  return {
    otherEngines,
    fleet: {
      organization: run.orgSlug,
      otherGpus: otherEngines.length * gpus,
      spareGpus: Math.max(0, otherEngines.length - keptEngines(run)) * gpus,
      lacks: lacksSome ? (growth.limit ?? "gpus") : null,
      yieldingGpus: growth.yields * gpus,
      ...(leaving.length === 0 ? {} : { leaving: { model: run.modelId, pods: leaving } })
    }
  }
}

/**
 * Keeps the run's place among the runs that wait for GPUs. Returns true if it gave up a claim or a place in a queue.
 */
const notePlace = ({ pool }: RunMemory, decided: DecidedRun): boolean => {
  const { enters, isIdle, now, observation, run } = decided
  return pool.note(run, enters?.to ?? run.phase, isIdle, {
    plan: enters?.plan,
    open: openClasses(observation),
    isUnfunded: observation.funding !== null,
    isRefused: givesClaimBack(observation, now),
    ...fleetChoice(decided)
  })
}

/** Decides about a run, and keeps the part of the decision that matters to other runs. */
export const decideRun = Effect.fnUntraced(function* (
  reconciler: Reconciler,
  run: Run
): Effect.fn.Return<DecidedRun, never, KubeClient | Runs | HttpClient.HttpClient> {
  const { enqueue, memory } = reconciler
  memory.followers.note(run)
  const gathered = yield* gather(reconciler, run)
  const now = yield* Clock.currentTimeMillis

  // No yield between this and `notePlace`, so that no other run is granted the same GPUs.
  const observation = gathered.observe()
  const decision = decide(observation, now)
  memory.watchdog.record(run.id, passRecord(observation, decision, now))
  memory.decisions.record({ run, observation, decision, now })
  const decided: DecidedRun = {
    run,
    gathered,
    observation,
    decision,
    enters: decision.actions.findLast((action) => action._tag === "Enter") ?? null,
    isIdle: isIdle(observation, now) || (isServed(observation) && isUnpaid(observation, now)),
    unfunded: fundingReason(observation, now),
    now
  }
  // The engine of a released run exists again if another run reuses it. The run is released again after that.
  if (observation.released && enginesOf(observation).some(({ alone }) => alone.pod !== null) && run.engineRun === run.id) memory.released.delete(run.id)
  const wentFirst = memory.pool.goesFirst(run.id)
  const waited = memory.references.waiting()
  const gaveUpTurn = memory.references.decided(run.id, observation.reference, decision.work === "preparation")
  // At once: if the pass fails after this and is repeated, nothing changes here any more.
  if (notePlace(memory, decided)) yield* Effect.forEach(memory.pool.queued(), enqueue, { discard: true })
  if (memory.references.waiting() > waited) yield* memory.references.offerPlaces
  if (gaveUpTurn) yield* Effect.forEach(memory.references.next(), enqueue, { discard: true })
  if (!wentFirst && memory.pool.goesFirst(run.id)) yield* Effect.forEach(memory.pool.yielders(), enqueue, { discard: true })
  return decided
})
