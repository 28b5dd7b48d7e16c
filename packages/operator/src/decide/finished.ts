import { answersOtherwise, compareFirst, toldOfBoot, withheld } from "./bootCheck.ts"
import { bringBack, lostWeights } from "./bringBack.ts"
import { chosenClass } from "./classAway.ts"
import { copyTold } from "./copying.ts"
import { Action, act, type Decision, wait } from "./Decision.ts"
import { noteImage, replaceChanged } from "./engineImage.ts"
import { heldUntil } from "./heldCandidates.ts"
import { hungAt, replaceHung } from "./hung.ts"
import { idleAt, isIdle, isServed } from "./idle.ts"
import { bootRestarts, drainLimit, drainLook, drainTime, idleLook } from "./limits.ts"
import { countedAs, goesOn, type Observation, type PodSeen } from "./Observation.ts"
import { replaceOutdated } from "./outdated.ts"
import { reuses } from "./reuse.ts"

const withdraw = ({ run }: Observation) => (run.endpoints.length === 0 ? [] : [Action.Publish({ endpoints: [] })])

/**
 * The pod is deleted once. If it is already being deleted on a node that is gone, no kubelet confirms that it ended, so
 * the deletion is forced.
 */
const removePod = ({ pod }: Observation) =>
  pod === null || (pod.deleting && pod.lost === null) ? [] : [Action.RemovePod({ uid: pod.uid, force: pod.lost !== null })]

/**
 * A failed or canceled run keeps only its record. Until the status shows the end, objects without a watch (the Secret)
 * are deleted too.
 */
const ended = (seen: Observation): Decision => {
  const { fetch, resource, run } = seen
  const message = run.failure === null ? "Cancelled." : `${run.failure.code}: ${run.failure.text}`
  const unmirrored = resource !== null && resource.mirroredPhase !== run.phase
  const pod = unmirrored ? [Action.RemovePod({ uid: null, force: seen.pod !== null && seen.pod.lost !== null })] : removePod(seen)
  const download = unmirrored || (fetch._tag !== "Absent" && fetch._tag !== "Leaving") ? [Action.RemoveFetch()] : []
  return act(message, ...withdraw(seen), ...pod, ...download)
}

const classGone = (seen: Observation): string =>
  `The host class ${chosenClass(seen)} does not exist, so the engine cannot be restarted. Create the class again, or deploy the model on another one.`

const isUp = (pod: PodSeen): boolean => pod.lost === null && !pod.deleting && pod.ready && pod.url !== null

/** Why an existing engine does not serve. */
const whyNotReady = ({ admission }: Pick<Observation, "admission">, pod: PodSeen): string =>
  pod.gated
    ? `It waits in Kueue's queue${admission === null ? "." : `: ${admission}`}`
    : pod.deleting
      ? "Its pod is being deleted."
      : (pod.unschedulable?.message ??
        pod.blocked ??
        copyTold(pod.copy) ??
        (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and is restarting.`))

/** The same for API callers, without quotations of the scheduler, Kueue or the node. */
const whyNotReadyInPublic = (pod: PodSeen): string => {
  if (pod.gated) return "It waits in the cluster's queue."
  if (pod.deleting) return "It is being replaced."
  if (pod.unschedulable !== null) return "It waits for a node with free GPUs."
  if (pod.blocked !== null) return "The cluster cannot start it yet."
  return copyTold(pod.copy) ?? (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and is restarting.`)
}

const notReady = (seen: Observation, pod: PodSeen): Decision => ({
  ...act(`The engine is not ready: ${whyNotReady(seen, pod)}`, ...withdraw(seen)),
  publicMessage: `The engine is not ready: ${whyNotReadyInPublic(pod)}`
})

/** The serving revision. Its engine exists, and is published exactly while it is ready. */
const serving = (seen: Observation, now: number): Decision => {
  const { pod, podClass, run } = seen
  if (pod === null) {
    return podClass === null ? act(classGone(seen), ...withdraw(seen)) : act("Starts the engine again.", ...withdraw(seen), Action.EnsurePod())
  }
  if (pod.lost !== null)
    return {
      ...act(`The engine was evicted: ${pod.lost}. It is replaced.`, ...withdraw(seen), Action.RemovePod({ uid: pod.uid, force: true })),
      publicMessage: "The engine was evicted and is replaced."
    }
  if (!pod.deleting && !pod.ready && pod.gpuFault && pod.restarts >= bootRestarts)
    return act(
      "A GPU of the engine failed, and the engine does not restart on it. It is replaced.",
      ...withdraw(seen),
      Action.NoteNodeFault({ code: "gpu_fault" }),
      Action.RemovePod({ uid: pod.uid, force: false })
    )
  if (seen.outdated && !pod.deleting) return replaceOutdated(pod, ...withdraw(seen))
  const changed = pod.deleting ? null : replaceChanged(seen)
  if (changed !== null) return act(changed.message, ...withdraw(seen), ...changed.actions)
  if (pod.deleting) return notReady(seen, pod)
  const brought = bringBack(seen, now)
  if (brought !== null) return { ...brought, actions: [...withdraw(seen), ...brought.actions] }
  if (!pod.ready || pod.url === null) return { ...notReady(seen, pod), work: goesOn(seen, "boot") }
  const [published, ...others] = run.endpoints
  const current = others.length === 0 && published?.url === pod.url && published.pod === pod.name
  // A published endpoint may still respond, and gateways turn away from one that does not. Nothing new gets traffic
  // because of a status from before the node became unresponsive.
  if (!current && pod.nodeDownSince !== null) return act("The engine's node does not respond.", ...withdraw(seen))
  // An engine with traffic was compared before it got any.
  const known = run.endpoints.some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)
  const first = known ? null : compareFirst(seen, now)
  if (first !== null) return { ...first, actions: [...withdraw(seen), ...first.actions] }
  return act(
    "Serves.",
    ...(current ? [] : [...(known ? [] : toldOfBoot(seen)), Action.Publish({ endpoints: [{ url: pod.url, pod: pod.name }] })]),
    // The image of an old revision may not be recorded yet.
    ...noteImage(seen)
  )
}

/**
 * A revision that was replaced, or whose model was deleted or disabled. It gets no new requests, finishes the current
 * ones, and then frees its GPUs.
 */
const draining = (seen: Observation, now: number, message: string): Decision => {
  const removal = removePod(seen)
  if (removal.length === 0 || (seen.pod !== null && seen.pod.lost !== null)) return act(message, ...withdraw(seen), ...removal)
  if (withdraw(seen).length > 0) return { ...act("Finishes its last requests.", ...withdraw(seen)), lookAgainAt: now + drainTime }
  const since = seen.withdrawnAt ?? now
  if (now < since + drainTime) return wait("Finishes its last requests.", since + drainTime)
  if (seen.run.inFlight > 0 && now < since + drainLimit) return wait("Finishes its last requests.", Math.min(now + drainLook, since + drainLimit))
  return act(message, ...removal)
}

/**
 * A verified revision that does not serve. It keeps its engine for a while, so that going live needs no second start.
 */
const candidate = (seen: Observation, now: number): Decision => {
  const { run } = seen
  const [by] = run.reusedBy
  if (by !== undefined) return wait(`Verified. ${by} makes it the serving revision.`)
  const until = heldUntil(countedAs(seen, run.endedAt ?? run.phaseSince), run.revision?.settings.hold_seconds ?? null)
  if (now < until && seen.pod !== null && seen.pod.lost === null) return wait("Verified. Its GPUs are held for a while.", until)
  return act("Verified. Its GPUs are free.", ...withdraw(seen), ...removePod(seen))
}

/** The state of an engine that this run serves with and another run owns. */
const engineOfOther = (seen: Observation, now: number): string => {
  const { pod, podClass, run } = seen
  const engine = `The engine of ${run.engineRun}, which this run reuses,`
  if (run.modelDisabled) return "The model is disabled; its weights stay."
  if (run.replacedBy !== null) return `Its GPUs went to its replacement, ${run.replacedBy}. It starts again if that run fails.`
  if (isIdle(seen, now)) return "Idle: the model had no requests for a while. The next request starts its engine."
  if (pod === null) return podClass === null ? classGone(seen) : `${engine} is not ready: it is being restarted.`
  if (pod.lost !== null) return `${engine} was evicted: ${pod.lost}. It is replaced.`
  if (!isUp(pod)) return `${engine} is not ready: ${whyNotReady(seen, pod)}`
  const kept = withheld(seen)
  if (kept === null) return `Serves with the engine of ${run.engineRun}, which this run reuses.`
  return kept === "AnswersDiffer" ? answersOtherwise(seen) : `${engine} is not ready: its answers are compared with the verified ones.`
}

/** A run that reused a revision has no engine of its own. The earlier run owns the engine. */
const reused = (seen: Observation, now: number): Decision => {
  const { run } = seen
  const message =
    run.failure !== null
      ? `${run.failure.code}: ${run.failure.text}`
      : run.phase === "cancelled"
        ? "Cancelled."
        : isServed(seen)
          ? engineOfOther(seen, now)
          : `Activated with the revision and the engine of ${run.engineRun}.`
  const withdrawn = run.phase !== "activated" && run.revision?.status === "draft" && run.reusedBy.length === 0 && run.endpoints.length > 0
  return act(message, ...(withdrawn ? [Action.Publish({ endpoints: [] })] : []))
}

/** Whether the run has neither an engine nor a download. */
const isBare = (seen: Observation): boolean =>
  seen.fetch._tag === "Absent" && (reuses(seen) || (seen.pod === null && seen.run.endpoints.length === 0 && !seen.budget))

/** Whether the cluster holds no objects of the run, and their release is not recorded yet. */
const isGone = (seen: Observation): boolean => {
  const { released, resource, run } = seen
  return (
    !released &&
    isBare(seen) &&
    (run.phase !== "activated" || run.modelDeleted || run.revision?.status !== "active") &&
    (resource === null || (resource.mirroredPhase === run.phase && !run.modelDeleted))
  )
}

/**
 * When the custom resource of a finished run is deleted, Unix milliseconds; null if it stays. The record in Postgres is
 * the truth. The resource of a serving run stays. An applied object belongs to the person who applied it. No engine
 * depends on the resource, and its deletion never counts as a request.
 */
const forgottenAt = (seen: Observation): number | null => {
  const { keepFinished, resource, run, shownSince } = seen
  if (keepFinished === null || resource === null || run.applied !== null || resource.mirroredPhase !== run.phase || !isBare(seen)) return null
  if ((run.phase === "activated" && run.revision?.status === "active") || run.reusedBy.length > 0) return null
  return Math.max(run.endedAt ?? run.phaseSince, shownSince) + keepFinished
}

const rule = (seen: Observation, now: number): Decision => {
  const { run } = seen
  if (reuses(seen)) return reused(seen, now)
  if (run.phase !== "activated") return ended(seen)
  if (run.modelDeleted) return draining(seen, now, "The model was deleted.")
  if (run.revision?.status === "superseded") return draining(seen, now, "Replaced by a newer revision.")
  if (run.revision?.status !== "active") return candidate(seen, now)
  if (run.modelDisabled) return draining(seen, now, "The model is disabled; its weights stay.")
  if (run.replacedBy !== null) return draining(seen, now, `Its GPUs went to its replacement, ${run.replacedBy}. It starts again if that run fails.`)
  return isIdle(seen, now) ? draining(seen, now, "Idle: the model had no requests for a while. The next request starts its engine.") : held(seen, now)
}

/** The serving revision: decides when it may idle, and when its engine hangs. */
const held = (seen: Observation, now: number): Decision => {
  const hung = hungAt(seen)
  if (hung !== null && now >= hung) {
    const { actions, message } = replaceHung(seen)
    return act(message, ...withdraw(seen), ...actions)
  }
  const at = idleAt(seen)
  const times = [hung, at === null ? null : Math.max(at, now + (at > now ? 0 : idleLook))].flatMap((time) => time ?? [])
  const decision = serving(seen, now)
  const all = [...times, ...(decision.lookAgainAt === null ? [] : [decision.lookAgainAt])]
  return { ...decision, lookAgainAt: all.length === 0 ? null : Math.min(...all) }
}

/** The disruption budget exists exactly while the engine serves. */
const budget = (seen: Observation, now: number): ReadonlyArray<Action> => {
  const { pod, podClass, run } = seen
  const serves = isServed(seen) && !reuses(seen) && run.replacedBy === null && pod !== null && !isIdle(seen, now)
  const wanted = serves && (podClass === null ? seen.budget : !podClass.evictable)
  return wanted === seen.budget ? [] : [wanted ? Action.EnsureBudget() : Action.RemoveBudget()]
}

/** A finished run never changes. Only its engine is left to handle. */
export const finished = (seen: Observation, now: number): Decision => {
  const { run } = seen
  const decision = rule(seen, now)
  const fetches = seen.fetch._tag !== "Absent" && seen.fetch._tag !== "Leaving"
  const stray = run.phase === "activated" && fetches && !(isServed(seen) && lostWeights(seen)) ? [Action.RemoveFetch()] : []
  const shown = seen.resource !== null && run.modelDeleted && seen.resource.mirroredPhase === run.phase && isBare(seen)
  const left = [...budget(seen, now), ...decision.actions, ...stray]
  const at = forgottenAt(seen)
  const old = at !== null && now >= at
  const actions = [...left, ...(shown || (old && left.length === 0) ? [Action.RemoveResource()] : [])]
  const lookAgainAt = at === null || old ? decision.lookAgainAt : Math.min(at, decision.lookAgainAt ?? at)
  return { ...decision, lookAgainAt, actions: actions.length === 0 && decision.lookAgainAt === null && isGone(seen) ? [Action.Release()] : actions }
}
