import { isFinished, type Phase } from "@seatrial/domain"
import { Action, act, type Decision } from "./Decision.ts"
import { booting, provisioning } from "./engineStart.ts"
import { finished } from "./finished.ts"
import { admissionLook, nodePatience } from "./limits.ts"
import { materializing } from "./materializing.ts"
import { countedFrom, type Observation } from "./Observation.ts"
import { queued, waiting } from "./placement.ts"
import { screening } from "./screening.ts"
import { activating, benchmarking, checking, measuring } from "./trial.ts"

const rules: Record<Phase, (seen: Observation, now: number) => Decision> = {
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
  run.applied !== null && actions.some((action) => action._tag === "Enter" && (action.to === "failed" || action.to === "cancelled"))

/** When the pod of an unresponsive node counts as lost, Unix milliseconds; null if its node is healthy. */
const lostAt = (seen: Observation): number | null => {
  const silent = seen.pod?.nodeDownSince ?? null
  return silent === null ? null : countedFrom(seen, silent) + nodePatience
}

/** A pod whose node has been unresponsive for too long is lost, whatever its last status reports. */
const withNode = (seen: Observation, now: number): Observation => {
  const { pod } = seen
  const at = lostAt(seen)
  if (pod === null || at === null || now < at) return seen
  return { ...seen, pod: { ...pod, ready: false, lost: pod.lost ?? "its node does not respond" } }
}

const rule = (seen: Observation, now: number): Decision =>
  !isFinished(seen.run.phase) && seen.run.modelDeleted
    ? act("The model was deleted.", Action.Enter({ to: "cancelled", reason: "The model was deleted.", failure: null, replaces: false }))
    : rules[seen.run.phase](seen, now)

/** The rules of the phases. Pure: the same observation and time (Unix milliseconds) give the same decision. */
export const decide = (observation: Observation, now: number): Decision => {
  const seen = withNode(observation, now)
  const decision = rule(seen, now)
  const nodeAt = lostAt(seen)
  const times = [
    decision.lookAgainAt,
    nodeAt === null || now >= nodeAt ? null : nodeAt,
    seen.pod?.gated === true && decision.actions.length === 0 ? now + admissionLook : null
  ]
  const lookAgainAt = times.reduce((earliest, time) => (earliest === null || (time !== null && time < earliest) ? time : earliest))
  const actions =
    seen.resource === null && wantsResource(seen) && !endsApplied(seen, decision) ? [Action.EnsureResource(), ...decision.actions] : decision.actions
  return { ...decision, actions, lookAgainAt }
}
