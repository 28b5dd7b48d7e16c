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

/** Once; but of one that is being deleted on a node that is gone nobody says that it has ended, and it would stay for ever. */
const removePod = ({ pod }: Observation) =>
  pod === null || (pod.deleting && pod.lost === null) ? [] : [Action.RemovePod({ uid: pod.uid, force: pod.lost !== null })]

/** Failed and cancelled runs leave nothing but their record. Until the status says so, also what no watch shows (the Secret) is removed. */
const ended = (seen: Observation): Decision => {
  const { fetch, resource, run } = seen
  const message = run.failure === null ? "Cancelled." : `${run.failure.code}: ${run.failure.text}`
  const unmirrored = resource !== null && resource.mirroredPhase !== run.phase
  const pod = unmirrored ? [Action.RemovePod({ uid: null, force: seen.pod !== null && seen.pod.lost !== null })] : removePod(seen)
  const download = unmirrored || (fetch._tag !== "Absent" && fetch._tag !== "Leaving") ? [Action.RemoveFetch()] : []
  return act(message, ...withdraw(seen), ...pod, ...download)
}

const classGone = (seen: Observation): string => `The host class ${chosenClass(seen)} does not exist now: the engine cannot be started again.`

const isUp = (pod: PodSeen): boolean => pod.lost === null && !pod.deleting && pod.ready && pod.url !== null

/** Why an engine that is there does not serve, in words. */
const whyNotReady = ({ admission }: Pick<Observation, "admission">, pod: PodSeen): string =>
  pod.gated
    ? `It waits in Kueue's queue${admission === null ? "." : `: ${admission}`}`
    : pod.deleting
      ? "Its pod is being deleted."
      : (pod.unschedulable?.message ??
        pod.blocked ??
        copyTold(pod.copy) ??
        (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and starts again.`))

/** The same for callers of the API: without what the scheduler, Kueue and the node say in their own words. */
const whyNotReadyInPublic = (pod: PodSeen): string => {
  if (pod.gated) return "It waits in the cluster's queue."
  if (pod.deleting) return "It ends and is started again."
  if (pod.unschedulable !== null) return "It waits for a node with free GPUs."
  if (pod.blocked !== null) return "The cluster cannot start it yet."
  return copyTold(pod.copy) ?? (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and starts again.`)
}

const notReady = (seen: Observation, pod: PodSeen): Decision => ({
  ...act(`The engine is not ready: ${whyNotReady(seen, pod)}`, ...withdraw(seen)),
  publicMessage: `The engine is not ready: ${whyNotReadyInPublic(pod)}`
})

/** The revision that carries the model's traffic: its engine is there, and published exactly while it is ready. */
const serving = (seen: Observation, now: number): Decision => {
  const { pod, podClass, run } = seen
  if (pod === null) {
    return podClass === null ? act(classGone(seen), ...withdraw(seen)) : act("Starts the engine again.", ...withdraw(seen), Action.EnsurePod())
  }
  if (pod.lost !== null)
    return {
      ...act(`The engine lost its place: ${pod.lost}. It is replaced.`, ...withdraw(seen), Action.RemovePod({ uid: pod.uid, force: true })),
      publicMessage: "The engine lost its place and is replaced."
    }
  if (!pod.deleting && !pod.ready && pod.gpuFault && pod.restarts >= bootRestarts)
    return act(
      "A GPU failed under the engine, which does not start again on it. It is replaced.",
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
  // What is published already may well answer, and gateways turn from what does not; but nothing gets traffic anew on the word of a status from before the silence.
  if (!current && pod.nodeDownSince !== null) return act("The engine's node does not answer.", ...withdraw(seen))
  // What has traffic is let be: it was compared before it got any.
  const known = run.endpoints.some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)
  const first = known ? null : compareFirst(seen, now)
  if (first !== null) return { ...first, actions: [...withdraw(seen), ...first.actions] }
  return act(
    "Serves.",
    ...(current ? [] : [...(known ? [] : toldOfBoot(seen)), Action.Publish({ endpoints: [{ url: pod.url, pod: pod.name }] })]),
    // Where it was tried before anybody kept its image.
    ...noteImage(seen)
  )
}

/** A revision that was replaced, or whose model is gone or disabled: no new requests, time for those under way, then its GPUs are free. */
const draining = (seen: Observation, now: number, message: string): Decision => {
  const removal = removePod(seen)
  if (removal.length === 0 || (seen.pod !== null && seen.pod.lost !== null)) return act(message, ...withdraw(seen), ...removal)
  if (withdraw(seen).length > 0) return { ...act("Finishes its last requests.", ...withdraw(seen)), lookAgainAt: now + drainTime }
  const since = seen.withdrawnAt ?? now
  if (now < since + drainTime) return wait("Finishes its last requests.", since + drainTime)
  if (seen.run.inFlight > 0 && now < since + drainLimit) return wait("Finishes its last requests.", Math.min(now + drainLook, since + drainLimit))
  return act(message, ...removal)
}

/** A verified revision that does not serve keeps its engine for a while, so that going live needs no second start. */
const candidate = (seen: Observation, now: number): Decision => {
  const { run } = seen
  const [by] = run.reusedBy
  if (by !== undefined) return wait(`Verified. ${by} brings it to its traffic.`)
  const until = heldUntil(countedAs(seen, run.endedAt ?? run.phaseSince), run.revision?.settings.hold_seconds ?? null)
  if (now < until && seen.pod !== null && seen.pod.lost === null) return wait("Verified. Its GPUs are held for a while.", until)
  return act("Verified. Its GPUs are free.", ...withdraw(seen), ...removePod(seen))
}

/** What has become of the engine that a run serves with and another run has. */
const engineOfOther = (seen: Observation, now: number): string => {
  const { pod, podClass, run } = seen
  const whose = `the engine of ${run.engineRun}, whose revision this is`
  if (run.modelDisabled) return "The model is disabled; its weights stay."
  if (run.replacedBy !== null) return `Its GPUs went to ${run.replacedBy}, which is to replace it. It starts again where that fails.`
  if (isIdle(seen, now)) return "Idle: nobody asked for the model for a while. The next request starts its engine."
  if (pod === null) return podClass === null ? classGone(seen) : `Not ready is ${whose}: it is started again.`
  if (pod.lost !== null) return `Lost its place has ${whose}: ${pod.lost}. It is replaced.`
  if (!isUp(pod)) return `Not ready is ${whose}: ${whyNotReady(seen, pod)}`
  const kept = withheld(seen)
  if (kept === null) return `Serves with ${whose}.`
  return kept === "AnswersDiffer" ? answersOtherwise(seen) : `Not ready is ${whose}: what it answers is compared with what was verified.`
}

/** A run that reused an earlier run's revision has no engine of its own: whatever becomes of that is for the earlier run. */
const reused = (seen: Observation, now: number): Decision => {
  const { run } = seen
  const message =
    run.failure !== null
      ? `${run.failure.code}: ${run.failure.text}`
      : run.phase === "cancelled"
        ? "Cancelled."
        : isServed(seen)
          ? engineOfOther(seen, now)
          : `Activated with the revision of ${run.engineRun}, which has the engine.`
  const withdrawn = run.phase !== "activated" && run.revision?.status === "draft" && run.reusedBy.length === 0 && run.endpoints.length > 0
  return act(message, ...(withdrawn ? [Action.Publish({ endpoints: [] })] : []))
}

/** Whether there is neither an engine of the run nor a download. */
const isBare = (seen: Observation): boolean =>
  seen.fetch._tag === "Absent" && (reuses(seen) || (seen.pod === null && seen.run.endpoints.length === 0 && !seen.budget))

/** Whether nothing of the run is left in the cluster but its record, and that was not said yet. */
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
 * When the custom resource of a run that is over goes, its record being the truth, Unix milliseconds; null where it stays. One that stands for what serves stays, one that
 * somebody applied is theirs, and nothing of a run hangs on its object: neither its engine, nor what a deletion might be taken for.
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
  if (run.replacedBy !== null) return draining(seen, now, `Its GPUs went to ${run.replacedBy}, which is to replace it. It starts again where that fails.`)
  return isIdle(seen, now) ? draining(seen, now, "Idle: nobody asked for the model for a while. The next request starts its engine.") : held(seen, now)
}

/** What serves, when it may idle, and when it is given up. */
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

/** The budget that keeps an engine from being evicted is there exactly while it serves. */
const budget = (seen: Observation, now: number): ReadonlyArray<Action> => {
  const { pod, podClass, run } = seen
  const serves = isServed(seen) && !reuses(seen) && run.replacedBy === null && pod !== null && !isIdle(seen, now)
  const wanted = serves && (podClass === null ? seen.budget : !podClass.evictable)
  return wanted === seen.budget ? [] : [wanted ? Action.EnsureBudget() : Action.RemoveBudget()]
}

/** A finished run never changes; what is left to do is about its engine. */
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
