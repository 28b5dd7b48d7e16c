import { endedUnactivated, isFinished, type Phase } from "@seatrial/domain"
import { admissionInterval, fundingInterval, nodePatience, placeInterval, usedUpInterval } from "../limits.ts"
import { enginesOf } from "../observation/engines.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { activating } from "./activating.ts"
import { Action, act, by, type Decision, type NamedDecision } from "./Decision.ts"
import { booting, provisioning } from "./engineStart.ts"
import { finished } from "./finished.ts"
import { materializing } from "./materializing.ts"
import { queued, waiting } from "./queues.ts"
import { withReference } from "./reference.ts"
import { endRefused } from "./refused.ts"
import { screening } from "./screening.ts"
import { benchmarking, checking, measuring } from "./trial.ts"

const rules: Record<Phase, (observation: Observation, now: number) => Decision> = {
  screening,
  materializing,
  waiting,
  queued,
  provisioning,
  booting,
  checking,
  measuring,
  benchmarking,
  activating,
  activated: finished,
  failed: finished,
  cancelled: finished
}

/**
 * An unfinished or serving run has a custom resource. If someone deletes the resource of a finished run, the operator
 * does not create it again. An applied object shows only its newest run, and is deleted with its model.
 */
const wantsResource = ({ pod, run }: Observation): boolean =>
  (run.applied === null || (run.applied.current !== null && !run.modelDeleted)) &&
  (!isFinished(run.phase) ||
    (run.phase === "activated" && !run.modelDeleted && (run.revision?.status === "active" || (pod !== null && run.engineRun === run.id))))

/**
 * Whether this decision ends the run of an applied object. A new object with another uid would count as a request to
 * try again.
 */
const endsApplied = ({ run }: Observation, { actions }: Decision): boolean =>
  run.applied !== null && actions.some((action) => action._tag === "Enter" && endedUnactivated(action.to))

/**
 * The actions, and that which creates a missing resource. A serving model does not wait for it: its API server may take
 * long to refuse the object. The download of an unfinished run belongs to the object.
 */
const withResource = (observation: Observation, decision: Decision): ReadonlyArray<Action> => {
  const { actions } = decision
  if (observation.resource !== null || !wantsResource(observation) || endsApplied(observation, decision)) return actions
  return isFinished(observation.run.phase) ? [...actions, Action.EnsureResource()] : [Action.EnsureResource(), ...actions]
}

/** When a pod of an unresponsive node counts as lost, Unix milliseconds; null if its node is healthy. */
const lostAt = (observation: Observation, pod: ObservedPod | null): number | null => {
  const silent = pod?.nodeDownSince ?? null
  return silent === null ? null : countedFrom(observation, silent) + nodePatience
}

/** A pod whose node has been unresponsive for too long is lost, even if its last status reports otherwise. */
const withNode = (observation: Observation, now: number): Observation => {
  const withLoss = (pod: ObservedPod | null): ObservedPod | null => {
    const at = lostAt(observation, pod)
    return pod === null || at === null || now < at ? pod : { ...pod, ready: false, lost: pod.lost ?? "its node does not respond" }
  }
  const engines = observation.engines.map((engine) => ({ ...engine, pod: withLoss(engine.pod) }))
  return { ...observation, pod: withLoss(observation.pod), engines }
}

/** How soon the organization's funds may change the decision; null if they cannot. */
const fundingCheck = ({ funding, pod, run }: Observation): number | null => {
  const { phase, revision } = run
  if (endedUnactivated(phase)) return null
  // The next request leads to a pass.
  if (funding !== null) return phase === "activated" && pod === null && revision?.settings.hold_seconds !== undefined ? placeInterval : fundingInterval
  return run.spendLimited && phase === "activated" && pod !== null && revision?.status === "active" ? usedUpInterval : null
}

const rule = (observation: Observation, now: number): Decision =>
  !isFinished(observation.run.phase) && observation.run.modelDeleted
    ? by("modelDeleted", act("The model was deleted.", Action.Enter({ to: "cancelled", reason: "The model was deleted.", failure: null, replaces: false })))
    : rules[observation.run.phase](observation, now)

/** The rules of the phases. Pure: the same observation and time (Unix milliseconds) give the same decision. */
export const decide = (gathered: Observation, now: number): NamedDecision => {
  const observation = withNode(gathered, now)
  const ruled = by(observation.run.phase, endRefused(observation, rule(observation, now), now))
  const decision = { ...withReference(observation, ruled, now), rule: ruled.rule }
  const pods = enginesOf(observation).map(({ alone }) => alone.pod)
  const nodeTimes = pods.flatMap((pod) => lostAt(observation, pod) ?? []).filter((at) => now < at)
  const check = fundingCheck(observation)
  const times = [
    decision.requeueAt,
    ...nodeTimes,
    pods.some((pod) => pod?.gated === true) && decision.actions.length === 0 ? now + admissionInterval : null,
    check === null ? null : now + check
  ]
  const requeueAt = times.reduce((earliest, time) => (earliest === null || (time !== null && time < earliest) ? time : earliest))
  return { ...decision, actions: withResource(observation, decision), requeueAt }
}
