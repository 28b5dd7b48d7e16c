import type { Endpoint } from "@seatrial/store"
import { placeInterval } from "../limits.ts"
import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import { growthLimits } from "../observation/ObservedEngine.ts"
import { isUncompared } from "./bootCheck.ts"
import { Action, act, by, type Decision, type NamedDecision, wait } from "./Decision.ts"
import { draining } from "./draining.ts"
import { held } from "./held.ts"
import { onEngine } from "./onEngine.ts"
import { hasPod } from "./Rule.ts"
import { stoppedMove } from "./stoppedMove.ts"
import { describeEarlier, followed, withinSurge } from "./surge.ts"
import { isSuspect } from "./suspect.ts"
import { endpointOf, isUp } from "./traffic.ts"
import { withdrawn } from "./withdraw.ts"

/** One engine of the fleet. `alone`: the observation as if it were the only one. */
interface Member {
  readonly ordinal: number
  readonly alone: Observation
}

export interface DecidedMember extends Member {
  readonly decision: Decision
}

/** Whether gateways route to the engine, and its node reports it ready. */
export const isGood = ({ alone }: Pick<Member, "alone">): boolean => hasPod(alone) && isUp(alone.pod) && endpointOf(alone) !== undefined

/** The same, and its node responds. The requests of an engine whose node does not may be lost. */
const isAnswering = (member: Pick<Member, "alone">): boolean => isGood(member) && member.alone.pod?.nodeDownSince === null

/** The endpoints of the engine after its decision. */
const endpointsAfter = ({ alone, decision }: DecidedMember): ReadonlyArray<Endpoint> =>
  decision.actions.findLast((action) => action._tag === "Publish")?.endpoints ?? alone.run.endpoints.map(({ pod, url }) => ({ pod, url }))

/** Whether the engine serves and, by itself, would go on. */
const stays = (member: DecidedMember): boolean => isGood(member) && endpointsAfter(member).length > 0

/** The same, and its node responds. */
const servesOn = (member: DecidedMember): boolean => stays(member) && isAnswering(member)

const desiredOf = ({ run }: Observation): number => run.replicas ?? 1

/**
 * The engines that give their GPUs back: those above the wanted number, and the highest ones if queued runs need their
 * GPUs. As many engines as serve now, up to the wanted number, go on until others serve, but for those that the model gives
 * to queued runs. The model keeps the first one; without a pod, it has no GPUs to count. The last engine goes on even if its
 * node does not respond.
 */
const leavers = (observation: Observation, members: ReadonlyArray<DecidedMember>): ReadonlySet<number> => {
  const { yields } = observation.growth
  const placed = members.filter(({ alone, ordinal }) => ordinal > 0 && alone.pod !== null)
  const surplus = placed.filter(({ ordinal }) => ordinal >= desiredOf(observation))
  const yielding = placed.slice(Math.max(0, placed.length - yields)).filter((member) => !surplus.includes(member))
  const leaving = [...surplus, ...yielding]
  const good = members.filter(servesOn)
  const goodLeavers = leaving.filter(servesOn).toSorted((one, other) => one.ordinal - other.ordinal)
  const hasFirst = members.some(({ alone, ordinal }) => ordinal === 0 && alone.pod !== null)
  const least = Math.max(1, good.length - (hasFirst ? yields : yields - 1))
  const needed = Math.min(desiredOf(observation), good.length, least)
  const reprieved = goodLeavers.slice(0, Math.max(0, needed - (good.length - goodLeavers.length)))
  const hasOther = reprieved.length > 0 || members.some((member) => stays(member) && !leaving.includes(member))
  if (!hasOther) reprieved.push(...leaving.filter(stays).slice(0, 1))
  return new Set(leaving.filter((member) => !reprieved.includes(member)).map(({ ordinal }) => ordinal))
}

/** Whether the engine starts or is being replaced. False if its start failed the comparison, or could not be compared. */
const isComing = (member: DecidedMember): boolean => {
  const { boot, pod } = member.alone
  if (servesOn(member)) return false
  if (pod === null) return member.decision.actions.some(({ _tag }) => _tag === "EnsurePod")
  return boot?.verdict?.outcome !== "differs" && !isUncompared(member.alone)
}

/**
 * Replaces engines whose probes differ from the trial, one after the other: a shared cause must not withdraw all
 * engines of a model. An engine without traffic is replaced first. Others follow when the rest of the model serves.
 */
const withoutSuspects = (members: ReadonlyArray<DecidedMember>, now: number): ReadonlyArray<DecidedMember> => {
  const suspects = members.filter(({ alone }) => hasPod(alone) && isSuspect(alone))
  const first = suspects.find(({ alone }) => hasPod(alone) && endpointOf(alone) === undefined) ?? suspects[0]
  if (first === undefined || members.length === 1) return members
  const rest = members.filter((member) => member !== first)
  const part = rest.some(isComing) ? "stays" : rest.some(servesOn) ? "goes" : "alone"
  return members.map((member) => (member === first ? { ...member, decision: held(member.alone, now, part) } : member))
}

/** Whether the engine gets its first traffic. */
const isAdded = (member: DecidedMember): boolean => hasPod(member.alone) && endpointOf(member.alone) === undefined && endpointsAfter(member).length > 0

/** Of the engines that get traffic in one pass, an uncompared one does only if no other does, or if it is the first of several. */
const withoutUncompared = (members: ReadonlyArray<DecidedMember>, now: number): ReadonlyArray<DecidedMember> => {
  const added = members.filter(isAdded)
  const chosen = added.find(({ alone }) => !isUncompared(alone)) ?? added[0]
  const waits = (member: DecidedMember) => member !== chosen && added.includes(member) && isUncompared(member.alone)
  return members.map((member) => (waits(member) ? { ...member, decision: held(member.alone, now, "stays", true) } : member))
}

/** An engine above the first that does not exist. `isGranted`: whether there is room for it. */
const absent = ({ alone }: Member, { growth }: Observation, isGranted: boolean, now: number): Decision => {
  if (isGranted) return withdrawn(alone, by("createPod", act("Seatrial starts another engine.", Action.EnsurePod({}))))
  const message = `Another engine waits for ${growthLimits[growth.limit ?? "gpus"].missing}.`
  return withdrawn(alone, by("noRoom", wait(message, now + placeInterval)))
}

/** Decides about each engine as if it were the only one. */
const decideMembers = (observation: Observation, members: ReadonlyArray<Member>, now: number): ReadonlyArray<DecidedMember> => {
  let room = observation.growth.room
  const decided = members.map((member): DecidedMember => {
    const isAbsent = member.ordinal > 0 && member.alone.pod === null
    if (isAbsent) return { ...member, decision: absent(member, observation, room-- > 0, now) }
    const othersServe = members.some((other) => other !== member && isAnswering(other))
    return { ...member, decision: held(member.alone, now, members.length > 1 ? "stays" : "alone", othersServe) }
  })
  const replaced = withoutSuspects(withoutUncompared(decided, now), now)
  const leaving = leavers(observation, replaced)
  return replaced.map((member) =>
    leaving.has(member.ordinal) ? { ...member, decision: by("scaleDown", draining(member.alone, now, "The engine's GPUs are free.")) } : member
  )
}

/** The actions of all engines but for their endpoints, each once. The image is recorded once. */
export const otherActions = (members: ReadonlyArray<DecidedMember>): ReadonlyArray<Action> => {
  const actions = members.flatMap(({ decision, ordinal }) =>
    onEngine(
      ordinal,
      decision.actions.filter(({ _tag }) => _tag !== "Publish")
    )
  )
  const keys = actions.map((action) => (action._tag === "RecordEngineImage" ? action._tag : JSON.stringify(action)))
  return actions.filter((_, index) => keys.indexOf(keys[index] ?? "") === index)
}

/** The background work of all engines. Only starts that are compared need some, so it has one kind. */
const workOf = (members: ReadonlyArray<DecidedMember>): Pick<Decision, "engines" | "work"> => {
  const working = members.filter(({ decision }) => decision.work !== null)
  const engines = working.map(({ ordinal }) => ordinal)
  return { work: working[0]?.decision.work ?? null, ...(engines.some((ordinal) => ordinal > 0) ? { engines } : {}) }
}

/**
 * The decisions about all engines as one. Its message describes the first wanted engine that does not serve, else one
 * that leaves, else the first engine.
 */
const merge = (observation: Observation, first: DecidedMember, members: ReadonlyArray<DecidedMember>): NamedDecision => {
  const isPublishing = members.some(({ decision }) => decision.actions.some(({ _tag }) => _tag === "Publish"))
  const publication = isPublishing ? [Action.Publish({ endpoints: members.flatMap(endpointsAfter) })] : []
  const desired = desiredOf(observation)
  const wanted = members.filter(({ ordinal }) => ordinal < desired)
  const worst = wanted.find((member) => !isGood(member)) ?? members.find(({ ordinal }) => ordinal >= desired) ?? first
  const stopped = stoppedMove(observation)
  const count = ` ${wanted.filter(isGood).length} of ${desired} ${desired === 1 ? "engine serves" : "engines serve"}.${describeEarlier(observation)}${stopped === null ? "" : ` ${stopped.message}`}`
  const { message, publicMessage, rule } = worst.decision
  const times = members.flatMap(({ decision }) => decision.requeueAt ?? [])
  return by("fleet", {
    actions: [...publication, ...otherActions(members)],
    ...workOf(members),
    message: message + count + (stopped === null ? "" : ` ${stopped.remedy}`),
    ...(publicMessage === undefined && stopped === null ? {} : { publicMessage: (publicMessage ?? message) + count }),
    requeueAt: times.length === 0 ? null : Math.min(...times),
    ...(rule === undefined ? {} : { rule })
  })
}

/** All engines of the serving revision. With one engine that moves at once, this is the decision about that engine. */
export const fleet = (observed: Observation, now: number): Decision => {
  const observation = withinSurge(observed)
  if (observation.engines.length === 0 && (observation.run.earlier ?? 0) === 0) return held(observation, now)
  const [first, ...others] = decideMembers(observation, enginesOf(observation), now)
  return first === undefined ? held(observation, now) : followed(observation, merge(observation, first, [first, ...others]), now)
}

/** The engine that shows the state of the model: one with traffic, or else the first. */
export const shownEngine = (observation: Observation): Observation => {
  const engines = enginesOf(observation)
  return (engines.find((engine) => isGood(engine) && engine.alone.run.endpoints.some(({ reachable }) => reachable)) ?? engines[0])?.alone ?? observation
}
