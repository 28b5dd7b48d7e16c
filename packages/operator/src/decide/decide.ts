import { type Phase, workingPhases } from "@seatrial/domain"
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

const isWorking = (phase: Phase) => workingPhases.some((working) => working === phase)

/**
 * A run that is at work or serves is shown in the cluster; the record of one that is over is not forced back on somebody who deleted it. An object that somebody applied
 * shows its newest run only, and goes with its model.
 */
const wantsResource = ({ pod, run }: Observation): boolean =>
  (run.applied === null || (run.applied.current !== null && !run.modelDeleted)) &&
  (isWorking(run.phase) ||
    (run.phase === "activated" && !run.modelDeleted && (run.revision?.status === "active" || (pod !== null && run.engineRun === run.id))))

/** Whether this is the end of an applied object's run: an object of another uid would be taken for a wish to try again. */
const endsApplied = ({ run }: Observation, { actions }: Decision): boolean =>
  run.applied !== null && actions.some((action) => action._tag === "Enter" && (action.to === "failed" || action.to === "cancelled"))

/** When the pod of a silent node counts as lost, Unix milliseconds; null where its node is well. */
const lostAt = (seen: Observation): number | null => {
  const silent = seen.pod?.nodeDownSince ?? null
  return silent === null ? null : countedFrom(seen, silent) + nodePatience
}

/** A pod whose node has been silent for too long is lost, whatever its last status says. */
const withNode = (seen: Observation, now: number): Observation => {
  const { pod } = seen
  const at = lostAt(seen)
  if (pod === null || at === null || now < at) return seen
  return { ...seen, pod: { ...pod, ready: false, lost: pod.lost ?? "its node does not answer" } }
}

const rule = (seen: Observation, now: number): Decision =>
  isWorking(seen.run.phase) && seen.run.modelDeleted
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
