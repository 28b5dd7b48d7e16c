import { choiceInWords, classesInWords, classOrder, freeInWords, isClassChoice, otherClassInWords } from "@seatrial/domain"
import type { ServingPlan } from "@seatrial/store"
import { maxQueueWakeUps, placeInterval } from "../limits.ts"
import type { ClassOption, Observation } from "../observation/Observation.ts"
import { classMissing } from "./classMissing.ts"
import { Action, act, type Decision, enter, wait } from "./Decision.ts"
import { waitsForFunds } from "./funding.ts"
import { describeCandidates } from "./heldCandidates.ts"
import { leaving, replaceOutdated } from "./outdated.ts"
import { canReplace, describePredecessor } from "./replacement.ts"

/** The next phase of a run whose weights are available, and the reason. */
export interface Placement {
  readonly phase: "waiting" | "queued" | "provisioning"
  readonly reason: string
  /** The reason for API callers. Set if `reason` quotes what the cluster reports about its nodes. */
  readonly publicReason?: string
  /** Whether the serving revision must give its GPUs up. */
  readonly replaces: boolean
  /** The host class that the run takes, if its request allows several. */
  readonly plan?: ServingPlan
}

const goes = (phase: Placement["phase"], reason: string): Placement => ({ phase, reason, replaces: false })
const count = (number: number, one: string, many = `${one}s`) => `${number} ${number === 1 ? one : many}`

const takesOver = ({ run }: Observation, because: string): Placement => ({
  phase: "provisioning",
  reason: `${because} Takes the GPUs of ${run.predecessor?.run ?? "its predecessor"}, which ${run.predecessor?.differs === true ? "has no traffic because its answers differ from the verified ones" : "serves until then; the model is unavailable in between"}.`,
  replaces: true
})

/** Why the organization's limit or order holds the run back, or null. */
const heldBack = (observation: Observation): Placement | null => {
  const { organizationGpus, run } = observation
  if (run.olderRun !== null) return goes("waiting", `Waits for the older run ${run.olderRun} of this model to end.`)
  const need = run.revision?.estimate.gpu_count ?? 0
  if (run.gpuLimit === null || organizationGpus + need <= run.gpuLimit) return null
  const limit = `its organization's limit of ${count(run.gpuLimit, "GPU")}`
  if (canReplace(observation) && organizationGpus + need - (run.predecessor?.gpus ?? 0) <= run.gpuLimit)
    return takesOver(observation, `The organization's limit of ${count(run.gpuLimit, "GPU")} allows only one engine.`)
  if (need > run.gpuLimit)
    return goes(
      "waiting",
      `Waits for an administrator: its engine needs ${count(need, "GPU")}, but its organization may hold only ${run.gpuLimit} at once. Raise the limit with seatrial admin limits set.`
    )
  const held = organizationGpus === 0 ? "holds none" : `uses or has requested ${organizationGpus}`
  return goes(
    "waiting",
    `Waits for ${limit}: it needs ${need}, and the organization ${held}.${describePredecessor(observation)}${describeCandidates(observation, true)}`
  )
}

/** A sentence about the class on which the run would start now and how to get there; empty if there is none. */
const otherClass = ({ options, podClass, roomOn, run }: Observation): string => {
  if (roomOn === null) return ""
  const { name, sameStore } = roomOn
  const open = options.length > 0 ? options.map((option) => option.podClass.hostClass.name) : podClass === null ? [] : [podClass.hostClass.name]
  const isAllowed = isClassChoice(run.servingRequest) && (classOrder(run.servingRequest)?.includes(name) ?? true)
  // A class with another store cannot take the same run: its weights would have to be downloaded there first.
  const isOption = sameStore && !isAllowed
  const names = [...open, name]
  const field = isOption ? `hostClasses to [${names.join(", ")}], or hostClass to any` : `hostClass to ${name}`
  const choice = isOption ? choiceInWords(names) : `host_class ${name}`
  return ` ${otherClassInWords(roomOn, run.applied === null ? `cancel this run and deploy with ${choice}` : `set spec.serving.${field}`)}`
}

/** The next phase of a run on its host class: its organization's queue, the queue of the pool, or provisioning. */
const placementOn = (observation: Observation): Placement => {
  const { ahead, requestedEngines, classGpus, freeSlots, podClass, shortage } = observation
  const held = heldBack(observation)
  if (held !== null) return held
  if (podClass === null) return goes("queued", classMissing(observation).message)
  const { autoscaling, maxGpus, nodes, queueName } = podClass
  if (nodes > 1)
    return goes("queued", `Waits for the host class ${podClass.hostClass.name} to change: its engines span ${nodes} nodes, which no engine supports yet.`)
  if (queueName !== null) return goes("queued", `Requests its GPUs from Kueue's queue ${queueName}.`)
  const { gpu_count, gpu_pool } = podClass.hostClass
  const gpus = `${count(gpu_count, "GPU")} of ${gpu_pool}`
  if (freeSlots > ahead) return goes("provisioning", `${gpus} ${gpu_count === 1 ? "is" : "are"} free.`)
  const full = maxGpus !== null && classGpus + gpu_count > maxGpus
  if (autoscaling && ahead === 0 && requestedEngines === 0 && !full) return goes("provisioning", `Requests a node: none has ${gpus} free.`)
  if (canReplace(observation)) return takesOver(observation, `No spare ${gpus}.`)
  const capacity = { name: podClass.hostClass.name, gpus: observation.nodeGpus, freeGpus: observation.freeGpus }
  const other = observation.roomOn === null ? "" : ` Class ${capacity.name} has ${capacity.freeGpus} of ${capacity.gpus} GPUs free.${otherClass(observation)}`
  const inTheWay = `${describePredecessor(observation)}${describeCandidates(observation)}${other}`
  if (shortage !== null) {
    const publicReason = `Waits for ${gpus}: no node of the host class can provide them now.${inTheWay}`
    return { ...goes("queued", `Waits for ${gpus}: ${shortage}.${inTheWay}`), publicReason }
  }
  const place = ahead === 0 ? "first in the queue." : `${count(ahead, "run goes", "runs go")} first.`
  const why = !autoscaling
    ? observation.setAside
      ? " The free GPUs are reserved for other organizations."
      : ""
    : full
      ? ` The host class is limited to ${maxGpus} GPUs.`
      : requestedEngines > 0
        ? ` ${count(requestedEngines, "engine has", "engines have")} requested a node and ${requestedEngines === 1 ? "gets" : "get"} one first.`
        : ""
  return goes("queued", `Waits for ${gpus}: ${place}${why}${inTheWay}`)
}

const gpusOf = ({ plan }: ClassOption): number => plan.estimate.gpu_count

/**
 * The run as it would be on one of its host classes. A queued run counts toward its organization's limit with its
 * smallest engine, so the limit must have room for a larger one.
 */
const onOption = (observation: Observation, { plan, podClass, ...view }: ClassOption): Observation => {
  const { options, run } = observation
  const isCounted = run.phase === "queued" && gpusOf({ plan, podClass, ...view }) <= Math.min(...options.map(gpusOf))
  const revision = run.revision === null ? null : { ...run.revision, settings: plan.settings, estimate: plan.estimate }
  return { ...observation, ...view, podClass, run: { ...run, revision, gpuLimit: isCounted ? null : run.gpuLimit } }
}

/**
 * The host classes in whose queues the run is, and the GPUs with which it counts toward its organization's limit; null
 * if its class is fixed.
 */
export const openClasses = (observation: Observation): { readonly classes: ReadonlyArray<string>; readonly gpus: number } | null => {
  const { options } = observation
  if (options.length === 0) return null
  const open = options.filter((option) => heldBack(onOption(observation, option)) === null)
  return { classes: open.map(({ podClass }) => podClass.hostClass.name), gpus: Math.min(...options.map(gpusOf)) }
}

/** The message of a run that several host classes could take. */
const waitsForOptions = (observation: Observation, open: ReadonlyArray<ClassOption>): Placement => {
  const names = open.map(({ freeGpus, nodeGpus, podClass }) => freeInWords({ name: podClass.hostClass.name, gpus: nodeGpus, freeGpus }))
  const ahead = leastAhead(observation)
  const place = ahead === 0 ? "first in the queue." : `${count(ahead, "run goes", "runs go")} first.`
  const publicReason = `Waits for GPUs of class ${classesInWords(names)}: ${place}${describePredecessor(observation)}${describeCandidates(observation)}${otherClass(observation)}`
  const shortages = open.flatMap(({ podClass, shortage }) => (shortage === null ? [] : [` ${podClass.hostClass.name}: ${shortage}.`]))
  return shortages.length === 0 ? goes("queued", publicReason) : { ...goes("queued", `${publicReason}${shortages.join("")}`), publicReason }
}

/** Runs that go first on the host class with the fewest such runs. */
export const leastAhead = ({ ahead, options }: Pick<Observation, "ahead" | "options">): number =>
  options.length === 0 ? ahead : Math.min(...options.map((option) => option.ahead))

/**
 * The next phase of a run whose weights are available. If several host classes are possible, it takes the first one
 * with free GPUs, else the first one that gets a node for it, else the first one on which it may replace the serving
 * revision. Without funds it waits.
 */
export const placement = (observation: Observation): Placement => {
  const { options, podClass } = observation
  const unfunded = waitsForFunds(observation)
  if (unfunded !== null) return { ...goes("waiting", unfunded.message), publicReason: unfunded.publicMessage }
  if (options.length === 0) return placementOn(observation)
  const outcomes = options.map((option) => ({ option, place: placementOn(onOption(observation, option)) }))
  const starts = outcomes.filter(({ place }) => place.phase === "provisioning")
  const spare = starts.filter(({ place }) => !place.replaces)
  const chosen = spare.find(({ option }) => option.freeSlots > option.ahead) ?? spare[0] ?? starts[0]
  if (chosen !== undefined)
    return { ...chosen.place, reason: `On class ${chosen.option.podClass.hostClass.name}: ${chosen.place.reason}`, plan: chosen.option.plan }
  // Only Kueue knows when its class has room.
  if (podClass !== null && podClass.queueName !== null) return placementOn(observation)
  const open = outcomes.filter(({ place }) => place.phase === "queued").map(({ option }) => option)
  if (open.length > 0) return waitsForOptions(observation, open)
  const [smallest] = outcomes.toSorted((a, b) => gpusOf(a.option) - gpusOf(b.option))
  return smallest === undefined ? placementOn(observation) : smallest.place
}

/** The same placement, with a sentence before the reason for each audience. */
export const withPreface = (place: Placement, preface: string): Placement => ({
  ...place,
  reason: `${preface} ${place.reason}`,
  ...(place.publicReason === undefined ? {} : { publicReason: `${preface} ${place.publicReason}` })
})

/** Enters the phase that `placement` chose. */
export const goTo = ({ phase, plan, publicReason, reason, replaces }: Placement, ...before: ReadonlyArray<Action>): Decision => ({
  ...act(reason, ...before, Action.Enter({ to: phase, reason, failure: null, replaces, ...(plan === undefined ? {} : { plan }) })),
  ...(publicReason === undefined ? {} : { publicMessage: publicReason })
})

/**
 * Deletes a pod that a run without a place must not have, left by a crash between two writes. A pod that the run reuses
 * is its place, unless its answers differ from the verified ones.
 */
const withoutPod = (observation: Observation, decision: Decision): Decision =>
  observation.pod === null || (observation.pod.deleting && observation.pod.lost === null)
    ? decision
    : observation.run.engineRun !== observation.run.id &&
        observation.pod.lost === null &&
        (observation.boot?.verdict?.outcome !== "differs" || observation.run.endpoints.length > 0)
      ? enter("provisioning", "Its engine already exists.")
      : act("Deletes an engine that was evicted.", Action.RemovePod({ uid: observation.pod.uid, force: observation.pod.lost !== null }))

/** The queue within the organization. */
export const waiting = (observation: Observation): Decision => {
  const place = placement(observation)
  return withoutPod(observation, place.phase === "waiting" ? wait(place.reason, null, place.publicReason) : goTo(place))
}

/** Kueue's queue. Kueue holds the pod back until it has quota, and reports why. */
const admission = (observation: Observation, queue: string): Decision => {
  const { admission, outdated, pod, run } = observation
  if (pod === null) return act(`Requests its GPUs from Kueue's queue ${queue}.`, Action.EnsurePod())
  if (pod.lost !== null) return act("Deletes an engine that was evicted.", Action.RemovePod({ uid: pod.uid, force: true }))
  if (outdated) return replaceOutdated(pod)
  // The pod ran before the run returned to the queue: a fault of its node sends the run to another one. Kubernetes
  // times are whole seconds.
  if (pod.started && pod.scheduledAt !== null && pod.scheduledAt + 1_000 <= run.phaseSince) {
    return act("Deletes the engine of the previous attempt.", Action.RemovePod({ uid: pod.uid, force: false }))
  }
  if (!pod.gated) return enter("provisioning", `Kueue's queue ${queue} admitted the run.`)
  const waits = `Waits in Kueue's queue ${queue}`
  const description = `${waits}${admission === null ? "." : `: ${admission}`}`
  const inTheWay = describeCandidates(observation)
  return wait(inTheWay === "" || description.endsWith(".") ? `${description}${inTheWay}` : `${description}.${inTheWay}`, null, `${waits}.${inTheWay}`)
}

/**
 * The queue of the pool. No older run of the model can appear any more, and a lowered limit applies only to later runs.
 */
export const queued = (observation: Observation, now: number): Decision => {
  // A terminating engine still holds its GPUs and its name.
  if (observation.pod?.deleting === true) return leaving(observation.pod)
  const { options, podClass, run } = observation
  const place = placement({ ...observation, run: { ...run, olderRun: null, gpuLimit: options.length === 0 ? null : run.gpuLimit } })
  const queue = podClass?.queueName ?? null
  if (queue !== null && podClass?.nodes === 1 && place.plan === undefined && observation.funding === null) return admission(observation, queue)
  const later = leastAhead(observation) < maxQueueWakeUps ? null : now + placeInterval
  return withoutPod(observation, place.phase === "provisioning" ? goTo(place) : wait(place.reason, later, place.publicReason))
}
