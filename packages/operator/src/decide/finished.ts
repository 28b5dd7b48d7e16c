import { enginesOf } from "../observation/engines.ts"
import { heldUntil } from "../observation/heldUntil.ts"
import { isServed } from "../observation/isServed.ts"
import { countedAs, type Observation } from "../observation/Observation.ts"
import { autoscale } from "./autoscale.ts"
import { describeDifference, withheld } from "./bootCheck.ts"
import { lostWeights } from "./bringBack.ts"
import { Action, act, by, type Decision, type NamedDecision, wait } from "./Decision.ts"
import { draining, removeOthers, removePods } from "./draining.ts"
import { fleet, shownEngine } from "./fleet.ts"
import { isUnpaid, releasedUnpaid } from "./funding.ts"
import { isIdle } from "./idle.ts"
import { movesBack } from "./movesBack.ts"
import { leave, retires, retiring } from "./retiring.ts"
import { reuses } from "./reuse.ts"
import { classGone, whyNotReady } from "./servingEngine.ts"
import { isUp, whyNoTraffic } from "./traffic.ts"
import { withdraw } from "./withdraw.ts"

const disabled = "The model is disabled; its weights stay."
const idle = "Idle: the model had no requests for a while. The next request starts its engine."
const replaced = (by: string): string => `The engine's GPUs went to the replacement, ${by}. The engine starts again if that deployment fails.`

/**
 * A failed or canceled run keeps only its record. Until the status shows the end, objects without a watch (the Secret)
 * are deleted too.
 */
const ended = (observation: Observation): Decision => {
  const { fetch, resource, run } = observation
  const message = run.failure === null ? "Canceled." : `${run.failure.code}: ${run.failure.text}`
  const isUnshown = resource !== null && resource.shownPhase !== run.phase
  const first = Action.RemovePod({ uid: null, force: observation.pod !== null && observation.pod.lost !== null })
  const pods = isUnshown ? [first, ...removeOthers(observation)] : removePods(observation)
  const download = isUnshown || (fetch._tag !== "Absent" && fetch._tag !== "Leaving") ? [Action.RemoveFetch()] : []
  return act(message, ...withdraw(observation), ...pods, ...download)
}

/**
 * A verified revision that does not serve. It keeps its engine for a while, so that going live needs no second start.
 */
const candidate = (observation: Observation, now: number): Decision => {
  const { run } = observation
  const [reuser] = run.reusedBy
  if (reuser !== undefined) return wait(`Verified. The deployment ${reuser} makes this revision the serving one.`)
  const until = isUnpaid(observation, now) ? now : heldUntil(countedAs(observation, run.endedAt ?? run.phaseSince), run.revision?.settings.hold_seconds ?? null)
  if (now < until && observation.pod !== null && observation.pod.lost === null) return wait("Verified. The engine keeps its GPUs for a while.", until)
  return act("Verified. The engine's GPUs are free.", ...withdraw(observation), ...removePods(observation))
}

/** Whether a ready engine of another run has traffic, and why not. `engine`: how the message names it. */
const trafficOfOther = (observation: Observation, engine: string, now: number): string => {
  const reason = whyNoTraffic(observation, now)
  if (reason === null) return `The model serves with the engine of ${observation.run.engineRun}, which this deployment reuses.`
  if (reason === "AnswersDiffer") return describeDifference(observation)
  return withheld(observation) === null
    ? `${engine} waits until a gateway has reached it.`
    : `${engine} is not ready, because its answers are being compared with the verified ones.`
}

/** The state of an engine that this run serves with and another run owns. */
const engineOfOther = (observation: Observation, now: number): string => {
  const { pod, podClass, run } = observation
  const engine = `The engine of ${run.engineRun}, which this deployment reuses,`
  if (run.modelDisabled) return disabled
  if (run.replacedBy !== null) return replaced(run.replacedBy)
  const unpaid = releasedUnpaid(observation, now)
  if (unpaid !== null) return unpaid.message
  if (isIdle(observation, now)) return idle
  if (pod === null) return podClass === null ? classGone(observation) : `${engine} is not ready, because it is being restarted.`
  if (pod.lost !== null) return `${engine} was evicted: ${pod.lost}. It is replaced.`
  if (!isUp(pod)) return `${engine} is not ready: ${whyNotReady(observation, pod)}`
  return trafficOfOther(observation, engine, now)
}

/** A run that reused a revision has no engine. The earlier run owns the engine. */
const reused = (observation: Observation, now: number): Decision => {
  const { run } = observation
  const message =
    run.failure !== null
      ? `${run.failure.code}: ${run.failure.text}`
      : run.phase === "cancelled"
        ? "Canceled."
        : isServed(observation)
          ? engineOfOther(shownEngine(observation), now)
          : `Activated with the revision and the engine of ${run.engineRun}.`
  const withdrawn = run.phase !== "activated" && run.revision?.status === "draft" && run.reusedBy.length === 0 && run.endpoints.length > 0
  return act(message, ...(withdrawn ? [Action.Publish({ endpoints: [] })] : []))
}

const hasAnyPod = (observation: Observation): boolean => enginesOf(observation).some(({ alone }) => alone.pod !== null)

/** Whether the run has neither an engine nor a download. */
const isBare = (observation: Observation): boolean =>
  observation.fetch._tag === "Absent" &&
  (reuses(observation) || (!hasAnyPod(observation) && observation.run.endpoints.length === 0 && observation.budget === "absent"))

/** Whether the cluster holds no objects of the run, and their release is not recorded yet. */
const isGone = (observation: Observation): boolean => {
  const { released, resource, run } = observation
  return (
    !released &&
    isBare(observation) &&
    (run.phase !== "activated" || run.modelDeleted || run.revision?.status !== "active") &&
    (resource === null || (resource.shownPhase === run.phase && !run.modelDeleted))
  )
}

/**
 * When the custom resource of a finished run is deleted, Unix milliseconds; null if it stays. The record in Postgres is
 * the truth. The resource of a serving run stays. An applied object belongs to the person who applied it. No engine
 * depends on the resource, and its deletion never counts as a request.
 */
const forgottenAt = (observation: Observation): number | null => {
  const { keepFinished, resource, run, shownSince } = observation
  if (keepFinished === null || resource === null || run.applied !== null || resource.shownPhase !== run.phase || !isBare(observation)) return null
  if ((run.phase === "activated" && run.revision?.status === "active") || run.reusedBy.length > 0) return null
  return Math.max(run.endedAt ?? run.phaseSince, shownSince) + keepFinished
}

/**
 * The decision about the engines of a served model, and about their number. The number also follows the load while the
 * model has no engine: otherwise the next request would start as many as there were.
 */
const scaled = (observation: Observation, now: number, decision: Decision): Decision => ({
  ...decision,
  actions: [...decision.actions, ...autoscale(observation, now)]
})

const rule = (observation: Observation, now: number): NamedDecision => {
  const { run } = observation
  if (reuses(observation)) return by("engineOfAnotherRun", reused(observation, now))
  if (run.phase !== "activated") return by("ended", ended(observation))
  if (run.modelDeleted) return by("modelDeleted", draining(observation, now, "The model was deleted."))
  if (run.revision?.status === "superseded" && retires(observation, now)) return by("superseded", retiring(observation, now))
  if (run.revision?.status === "superseded") return by("superseded", leave(observation, now))
  if (run.revision?.status !== "active") return by("candidate", candidate(observation, now))
  if (run.modelDisabled) return by("modelDisabled", draining(observation, now, disabled))
  if (run.replacedBy !== null) return by("replaced", scaled(observation, now, draining(observation, now, replaced(run.replacedBy))))
  const unpaid = releasedUnpaid(observation, now)
  if (unpaid !== null) {
    const decision = scaled(observation, now, draining(observation, now, ""))
    const publicMessage = `${unpaid.publicMessage} ${decision.message}`.trimEnd()
    return by("funds", { ...decision, message: `${unpaid.message} ${decision.message}`.trimEnd(), publicMessage })
  }
  const back = movesBack(observation)
  if (back !== null) return by("movesBack", back)
  return isIdle(observation, now)
    ? by("idle", scaled(observation, now, draining(observation, now, idle)))
    : by("serving", scaled(observation, now, fleet(observation, now)))
}

/** Whether engines serve that the operator does not take away by itself, or only one by one. */
const isProtected = (observation: Observation, now: number): boolean => {
  const { run } = observation
  if (reuses(observation) || run.modelDeleted || !hasAnyPod(observation)) return false
  if (run.revision?.status === "superseded") return retires(observation, now)
  return isServed(observation) && run.replacedBy === null && !isIdle(observation, now) && !isUnpaid(observation, now)
}

/**
 * The disruption budget exists while engines serve, unless their host class allows evictions. An edited budget is
 * corrected.
 */
const budget = (observation: Observation, now: number): ReadonlyArray<Action> => {
  const { podClass } = observation
  const exists = observation.budget !== "absent"
  const wanted = isProtected(observation, now) && (podClass === null ? exists : !podClass.evictable)
  if (wanted) return observation.budget === "intact" ? [] : [Action.EnsureBudget()]
  return exists ? [Action.RemoveBudget()] : []
}

/** Deletes a download that an activated run does not need. */
const strayDownload = (observation: Observation): ReadonlyArray<Action> => {
  const { fetch, run } = observation
  const hasDownload = fetch._tag !== "Absent" && fetch._tag !== "Leaving"
  const isNeeded = isServed(observation) && enginesOf(observation).some(({ alone }) => lostWeights(alone))
  return run.phase === "activated" && hasDownload && !isNeeded ? [Action.RemoveFetch()] : []
}

/** Whether the custom resource shows the end of a run whose model was deleted. */
const showsDeletion = (observation: Observation): boolean => {
  const { resource, run } = observation
  return resource !== null && run.modelDeleted && resource.shownPhase === run.phase && isBare(observation)
}

/** A finished run never changes. Only its engine is left to handle. */
export const finished = (observation: Observation, now: number): Decision => {
  const decision = rule(observation, now)
  const [budgetAction] = budget(observation, now)
  // The engine's traffic does not wait for a budget that the cluster may refuse.
  const createsBudget = budgetAction?._tag === "EnsureBudget"
  const left = [
    ...(budgetAction === undefined || createsBudget ? [] : [budgetAction]),
    ...decision.actions,
    ...strayDownload(observation),
    ...(createsBudget ? [budgetAction] : [])
  ]
  const at = forgottenAt(observation)
  const isExpired = at !== null && now >= at
  const isForgotten = showsDeletion(observation) || (isExpired && left.length === 0)
  const actions = isForgotten ? [...left, Action.RemoveResource()] : left
  const requeueAt = at === null || isExpired ? decision.requeueAt : Math.min(at, decision.requeueAt ?? at)
  const isDone = actions.length === 0 && decision.requeueAt === null && isGone(observation)
  return { ...decision, requeueAt, actions: isDone ? [Action.Release()] : actions }
}
