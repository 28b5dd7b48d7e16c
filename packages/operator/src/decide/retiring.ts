import type { Endpoint } from "@seatrial/store"
import { moveInterval } from "../limits.ts"
import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import { Action, by, type Decision, type NamedDecision, wait } from "./Decision.ts"
import { draining } from "./draining.ts"
import { type DecidedMember, otherActions } from "./fleet.ts"
import { isUnpaid } from "./funding.ts"
import { hasPod } from "./Rule.ts"
import { leastServing } from "./surge.ts"
import { endpointOf, isUp } from "./traffic.ts"

/**
 * Whether the superseded revision leaves engine by engine, as engines of the serving and of newer revisions get good.
 */
export const retires = (observation: Observation, now: number): boolean => (observation.run.newer ?? null) !== null && !isUnpaid(observation, now)

/**
 * The engines that go on serving, the lowest first, and their endpoints: as many as the newer revisions lack. Queued
 * runs get the GPUs of some, but never the model's last engine.
 */
const stayersOf = (observation: Observation): ReadonlyMap<number, Endpoint> => {
  const newer = observation.run.newer?.length ?? 0
  const present = enginesOf(observation).filter(({ alone }) => alone.pod !== null)
  const good = present.flatMap(({ alone, ordinal }) => {
    const endpoint = hasPod(alone) && isUp(alone.pod) && alone.pod.nodeDownSince === null ? endpointOf(alone) : undefined
    return endpoint === undefined ? [] : [[ordinal, { url: endpoint.url, pod: endpoint.pod }] as const]
  })
  const lacking = Math.min(good.length, Math.max(0, leastServing(observation) - newer))
  const fewest = Math.max(newer > 0 ? 0 : 1, present.length - observation.growth.yields)
  return new Map(good.slice(0, Math.min(lacking, fewest)))
}

/** What the engines that leave do. */
export const leave = (observation: Observation, now: number): Decision => draining(observation, now, "Another revision replaced this one.")

/** The revision serves with fewer and fewer engines. None is started or replaced. */
export const retiring = (observation: Observation, now: number): NamedDecision => {
  const stayers = stayersOf(observation)
  const text = `This earlier revision serves with ${stayers.size} ${stayers.size === 1 ? "engine" : "engines"} until the new revision has enough engines.`
  const members = enginesOf(observation).map(
    (member): DecidedMember => ({ ...member, decision: stayers.has(member.ordinal) ? wait(text, now + moveInterval) : leave(member.alone, now) })
  )
  const endpoints = [...stayers.values()]
  const isChanged = endpoints.length < observation.run.endpoints.length
  const shown = members.find(({ ordinal }) => stayers.has(ordinal)) ?? members.find(({ alone }) => alone.pod !== null) ?? members[0]
  const times = members.flatMap(({ decision }) => decision.requeueAt ?? [])
  return by("retiring", {
    actions: [...(isChanged ? [Action.Publish({ endpoints })] : []), ...otherActions(members)],
    work: null,
    message: shown?.decision.message ?? text,
    requeueAt: times.length === 0 ? null : Math.min(...times)
  })
}
