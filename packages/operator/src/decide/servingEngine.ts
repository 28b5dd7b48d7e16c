import { bootRestarts } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { goesOn } from "../observation/work.ts"
import { bootEvents, compareFirst } from "./bootCheck.ts"
import { bringBack } from "./bringBack.ts"
import { chosenClass } from "./classMissing.ts"
import { describeCopy } from "./copying.ts"
import { Action, act, by, type Decision } from "./Decision.ts"
import { noteImage, replaceChanged } from "./engineImage.ts"
import { replaceOutdated } from "./outdated.ts"
import { type EngineObservation, firstOf, hasPod, type Rule } from "./Rule.ts"
import { noteSuspect, replaceSuspect, type SuspectPart } from "./suspect.ts"
import { describeTraffic, endpointOf } from "./traffic.ts"
import { withdrawn } from "./withdraw.ts"

export const classGone = (observation: Observation): string =>
  `The host class ${chosenClass(observation)} does not exist or cannot be read, so the engine cannot be restarted. Create or correct the class, or deploy the model on another one.`

/** Why an existing engine does not serve. */
export const whyNotReady = ({ admission }: Pick<Observation, "admission">, pod: ObservedPod): string =>
  pod.gated
    ? `It waits in Kueue's queue${admission === null ? "." : `: ${admission}`}`
    : pod.deleting
      ? "Its pod is being deleted."
      : (pod.unschedulable?.message ??
        pod.blocked ??
        describeCopy(pod.copy) ??
        (pod.unreadySidecar === null ? null : `The container ${pod.unreadySidecar}, which the cluster added to its pod, is not ready.`) ??
        (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and is restarting.`))

/** The same for API callers, without quotations of the scheduler, Kueue or the node. */
const whyNotReadyInPublic = (pod: ObservedPod): string => {
  if (pod.gated) return "It waits in the cluster's queue."
  if (pod.deleting) return "It is being replaced."
  if (pod.unschedulable !== null) return "It waits for a node with free GPUs."
  if (pod.blocked !== null) return "The cluster cannot start it yet."
  if (pod.unreadySidecar !== null) return "A container that the cluster added to its pod is not ready."
  return describeCopy(pod.copy) ?? (pod.lastExit === null ? "It loads the model." : `It ended with code ${pod.lastExit.code} and is restarting.`)
}

/** How a message names the engine: another one of the model may serve. */
const nameOf = ({ run }: EngineObservation): string => ((run.replicas ?? 1) > 1 ? "An engine" : "The engine")

const notReady = (observation: EngineObservation): Decision => ({
  ...act(`${nameOf(observation)} is not ready: ${whyNotReady(observation, observation.pod)}`),
  publicMessage: `${nameOf(observation)} is not ready: ${whyNotReadyInPublic(observation.pod)}`
})

/** A deleted pod also ends. It may have been Seatrial that deleted it, for a queued run that gets its GPUs. */
const evicted: Rule = (observation) => {
  const { deleting, lost, uid } = observation.pod
  if (lost === null) return null
  const name = nameOf(observation)
  const removal = Action.RemovePod({ uid, force: true })
  if (deleting) return act(`${name} has ended, because its pod was deleted.`, removal)
  return { ...act(`${name} was evicted: ${lost}. It is replaced.`, removal), publicMessage: `${name} was evicted and is replaced.` }
}

const failedCard: Rule = ({ pod }) => {
  if (pod.ready || !pod.gpuFault || pod.restarts < bootRestarts) return null
  return act(
    "A GPU of the engine failed, and the engine does not restart on that GPU. The engine is replaced.",
    Action.NoteNodeFault({ code: "gpu_fault" }),
    Action.RemovePod({ uid: pod.uid, force: false })
  )
}

const outdated: Rule = ({ outdated, pod }) => (outdated ? replaceOutdated(pod) : null)

const otherImage: Rule = (observation) => {
  const changed = replaceChanged(observation)
  return changed === null ? null : act(changed.message, ...changed.actions)
}

const beingDeleted: Rule = (observation) => (observation.pod.deleting ? notReady(observation) : null)

const starting: Rule = (observation) =>
  observation.pod.ready && observation.pod.url !== null ? null : { ...notReady(observation), work: goesOn(observation, "boot") }

/** The endpoint of the engine if gateways route to it, and whether they route to nothing else. */
const publication = (observation: EngineObservation) => {
  const isPublished = endpointOf(observation) !== undefined
  return { isPublished, isCurrent: isPublished && observation.run.endpoints.length === 1 }
}

/**
 * A published endpoint may still respond, and gateways turn away from an unresponsive one. Nothing new gets traffic
 * because of a status from before the node became unresponsive.
 */
const silentNode: Rule = (observation) =>
  observation.pod.nodeDownSince === null || publication(observation).isCurrent ? null : act("The engine's node does not respond.")

/** An engine with traffic was compared before it got any, if that was possible. */
const comparison =
  (othersServe: boolean): Rule =>
  (observation, now) =>
    publication(observation).isPublished ? null : compareFirst(observation, now, othersServe)

/** Why the engine gets no traffic, in the order of precedence. An engine that is being deleted is not replaced. */
const replacements: Readonly<Record<string, Rule>> = { failedCard, outdated, otherImage }
const obstacles: Readonly<Record<string, Rule>> = { beingDeleted, bringBack, starting, silentNode }

const withheldFrom = (observation: EngineObservation, now: number, othersServe: boolean): Decision | null =>
  firstOf({ evicted }, observation, now) ??
  (observation.pod.deleting ? null : firstOf(replacements, observation, now)) ??
  firstOf({ ...obstacles, comparison: comparison(othersServe) }, observation, now)

const publish = (observation: EngineObservation): ReadonlyArray<Action> => {
  const { name, url } = observation.pod
  const { isCurrent, isPublished } = publication(observation)
  if (isCurrent || url === null) return []
  return [...(isPublished ? [] : bootEvents(observation)), Action.Publish({ endpoints: [{ url, pod: name }] })]
}

/** The serving revision has no engine. */
const withoutEngine = (observation: Observation): Decision =>
  observation.podClass === null
    ? by("classMissing", act(classGone(observation)))
    : by("createPod", act("Seatrial starts the engine again.", Action.EnsurePod({})))

/**
 * The serving revision. Its engine exists, and is published exactly while it is ready. `part`: what may happen to it
 * after an alarm. `othersServe`: whether other engines of the revision serve.
 */
export const serving = (observation: Observation, now: number, part: SuspectPart, othersServe: boolean): Decision => {
  if (!hasPod(observation)) return withdrawn(observation, withoutEngine(observation))
  const withheld = withheldFrom(observation, now, othersServe)
  if (withheld !== null) return withdrawn(observation, withheld)
  const replacement = replaceSuspect(observation, now, part)
  if (replacement !== null) return by("suspect", replacement)
  // The image of an old revision may not be recorded yet.
  const { message, ...traffic } = describeTraffic(observation, now)
  const { events, remark } = noteSuspect(observation, part)
  return by("serves", { ...act(message + remark, ...events, ...publish(observation), ...noteImage(observation)), ...traffic })
}
