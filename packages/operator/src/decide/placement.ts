import { choiceInWords, classesInWords, classOrder, freeInWords, type HostClass, isClassChoice, otherClassInWords } from "@seatrial/domain"
import type { ServingPlan } from "@seatrial/store"
import type { ClassOption, Observation } from "../observation/Observation.ts"
import type { PodClass } from "../resources/PodClass.ts"
import { classMissing } from "./classMissing.ts"
import { Action, act, by, type Decision } from "./Decision.ts"
import { waitsForFunds } from "./funding.ts"
import { describeCandidates } from "./heldCandidates.ts"
import { canReplace, describePredecessor } from "./replacement.ts"

/** The next phase of a run whose weights are available, and the reason. */
export interface Placement {
  /** The name of the rule that decided. */
  readonly rule: string
  readonly phase: "waiting" | "queued" | "provisioning"
  readonly reason: string
  /** The reason for API callers. Set if `reason` quotes what the cluster reports about its nodes. */
  readonly publicReason?: string
  /** Whether the serving revision must give its GPUs up. */
  readonly replaces: boolean
  /** The host class that the run takes, if its request allows several. */
  readonly plan?: ServingPlan
}

const goes = (rule: string, phase: Placement["phase"], reason: string): Placement => ({ rule, phase, reason, replaces: false })
const count = (number: number, one: string, many = `${one}s`) => `${number} ${number === 1 ? one : many}`

const takesOver = (rule: string, { run: { predecessor } }: Observation, because: string): Placement => {
  const effect =
    predecessor?.differs === true
      ? `${predecessor.run} had no traffic, because its answers differ from the verified ones.`
      : "The model is unavailable until the new revision is ready."
  return {
    rule,
    phase: "provisioning",
    reason: `${because} ${predecessor === null ? "The serving deployment" : `The deployment ${predecessor.run}`} is stopped, and this deployment uses its GPUs. ${effect}`,
    replaces: true
  }
}

/** Why the organization's limit or order holds the run back, or null. */
const heldBack = (observation: Observation): Placement | null => {
  const { organizationGpus, run } = observation
  if (run.olderRun !== null) return goes("olderRun", "waiting", `The deployment waits for the older deployment ${run.olderRun} of this model to end.`)
  const need = run.revision?.estimate.gpu_count ?? 0
  if (run.gpuLimit === null || organizationGpus + need <= run.gpuLimit) return null
  const limit = `the organization's limit of ${count(run.gpuLimit, "GPU")}`
  if (canReplace(observation) && organizationGpus + need - (run.predecessor?.gpus ?? 0) <= run.gpuLimit)
    return takesOver("limitOfOneEngine", observation, `The organization's limit of ${count(run.gpuLimit, "GPU")} allows only one engine.`)
  if (need > run.gpuLimit)
    return goes(
      "limitTooLow",
      "waiting",
      `The deployment waits for an administrator. Its engine needs ${count(need, "GPU")}, but the organization may hold only ${run.gpuLimit} at once. Raise the limit with seatrial admin limits set.`
    )
  const held = organizationGpus === 0 ? "holds none" : `uses or has requested ${organizationGpus}`
  return goes(
    "organizationLimit",
    "waiting",
    `The deployment waits for room under ${limit}. It needs ${need}. The organization ${held}.${describePredecessor(observation)}${describeCandidates(observation, true)}`
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
  const field = isOption ? `\`spec.serving.hostClasses: [${names.join(", ")}]\` or \`spec.serving.hostClass: any\`` : `\`spec.serving.hostClass: ${name}\``
  const choice = isOption ? choiceInWords(names) : `\`host_class: ${name}\``
  return ` ${otherClassInWords(roomOn, run.applied === null ? `cancel this deployment and deploy again with ${choice}` : `set ${field}`)}`
}

interface ClassObservation extends Observation {
  readonly podClass: PodClass
}

const hasClass = (observation: Observation): observation is ClassObservation => observation.podClass !== null

/** One reason for the next phase of a run on its host class, or null. */
type PlacementRule = (observation: ClassObservation) => Placement | null

const gpusInWords = ({ gpu_count, gpu_pool }: HostClass): string => `${count(gpu_count, "GPU")} of ${gpu_pool}`

/** Whether another engine would exceed the limit of the host class. */
const isFull = ({ classGpus, podClass: { hostClass, maxGpus } }: ClassObservation): boolean => maxGpus !== null && classGpus + hostClass.gpu_count > maxGpus

const severalNodes: PlacementRule = ({ podClass: { hostClass, nodes } }) =>
  nodes > 1
    ? goes(
        "severalNodes",
        "queued",
        `The deployment waits for a change of the host class ${hostClass.name}, which has \`nodes: ${nodes}\`. Seatrial supports only \`nodes: 1\`.`
      )
    : null

const kueue: PlacementRule = ({ podClass: { queueName } }) =>
  queueName === null ? null : goes("kueue", "queued", `The deployment requests GPUs from Kueue's queue ${queueName}.`)

const freeGpus: PlacementRule = ({ ahead, freeSlots, podClass: { hostClass } }) =>
  freeSlots > ahead ? goes("freeGpus", "provisioning", `${gpusInWords(hostClass)} ${hostClass.gpu_count === 1 ? "is" : "are"} free.`) : null

/** Requests a node, one engine at a time. */
const newNode: PlacementRule = (observation) => {
  const { ahead, podClass, requestedEngines } = observation
  return podClass.autoscaling && ahead === 0 && requestedEngines === 0 && !isFull(observation)
    ? goes("newNode", "provisioning", `The deployment requests a node: none has ${gpusInWords(podClass.hostClass)} free.`)
    : null
}

const gpusOfPredecessor: PlacementRule = (observation) =>
  canReplace(observation) ? takesOver("gpusOfPredecessor", observation, `No other GPUs of ${observation.podClass.hostClass.gpu_pool} are free.`) : null

/** In the order of their precedence. */
const placementRules: ReadonlyArray<PlacementRule> = [severalNodes, kueue, freeGpus, newNode, gpusOfPredecessor]

/** The holders of the GPUs for which the run waits, and a class on which it would start at once. */
const describeHolders = (observation: ClassObservation): string => {
  const { name } = observation.podClass.hostClass
  const elsewhere =
    observation.roomOn === null ? "" : ` Class ${name} has ${observation.freeGpus} of ${observation.nodeGpus} GPUs free.${otherClass(observation)}`
  return `${describePredecessor(observation)}${describeCandidates(observation)}${elsewhere}`
}

/** Why a run does not start although it may be the first in the queue; empty if the GPUs are only taken. */
const whyNoSlot = (observation: ClassObservation): string => {
  const { podClass, requestedEngines, setAside } = observation
  if (!podClass.autoscaling) return setAside ? " The free GPUs are reserved for other organizations." : ""
  if (isFull(observation)) return ` The host class is limited to ${podClass.maxGpus} GPUs.`
  if (requestedEngines === 0) return ""
  return requestedEngines === 1
    ? " 1 other engine has already requested a node and gets it before this deployment."
    : ` ${requestedEngines} other engines have already requested nodes and get them before this deployment.`
}

const placeInQueue = (ahead: number): string => (ahead === 0 ? "first in the queue." : `${count(ahead, "deployment goes", "deployments go")} first.`)

const waitsForGpus = (observation: ClassObservation): Placement => {
  const { ahead, podClass, shortage } = observation
  const gpus = gpusInWords(podClass.hostClass)
  const holders = describeHolders(observation)
  if (shortage === null) return goes("noFreeGpus", "queued", `The deployment waits for ${gpus}: ${placeInQueue(ahead)}${whyNoSlot(observation)}${holders}`)
  const publicReason = `The deployment waits for ${gpus}: no node of the host class can provide them now.${holders}`
  return { ...goes("noNode", "queued", `The deployment waits for ${gpus}: ${shortage}.${holders}`), publicReason }
}

/** The next phase of a run on its host class: its organization's queue, the queue of the pool, or provisioning. */
const placementOn = (observation: Observation): Placement => {
  const held = heldBack(observation)
  if (held !== null) return held
  if (!hasClass(observation)) return goes("classMissing", "queued", classMissing(observation).message)
  for (const rule of placementRules) {
    const place = rule(observation)
    if (place !== null) return place
  }
  return waitsForGpus(observation)
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
  const place = placeInQueue(leastAhead(observation))
  const publicReason = `The deployment waits for GPUs of class ${classesInWords(names)}: ${place}${describePredecessor(observation)}${describeCandidates(observation)}${otherClass(observation)}`
  const shortages = open.flatMap(({ podClass, shortage }) => (shortage === null ? [] : [` ${podClass.hostClass.name}: ${shortage}.`]))
  return shortages.length === 0
    ? goes("noFreeGpus", "queued", publicReason)
    : { ...goes("noNode", "queued", `${publicReason}${shortages.join("")}`), publicReason }
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
  if (unfunded !== null) return { ...goes("funds", "waiting", unfunded.message), publicReason: unfunded.publicMessage }
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
export const goTo = ({ phase, plan, publicReason, reason, replaces, rule }: Placement, ...before: ReadonlyArray<Action>): Decision =>
  by(rule, {
    ...act(reason, ...before, Action.Enter({ to: phase, reason, failure: null, replaces, ...(plan === undefined ? {} : { plan }) })),
    ...(publicReason === undefined ? {} : { publicMessage: publicReason })
  })
