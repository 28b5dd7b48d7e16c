import { type Phase, workingPhases } from "@seatrial/domain"
import { Action, act, type Decision } from "./Decision.ts"
import { booting, provisioning } from "./engineStart.ts"
import { finished } from "./finished.ts"
import { materializing } from "./materializing.ts"
import type { Observation } from "./Observation.ts"
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

/** A run that is at work or serves is shown in the cluster; the record of one that is over is not forced back on somebody who deleted it. */
const wantsResource = ({ pod, run }: Observation): boolean =>
  isWorking(run.phase) || (run.phase === "activated" && !run.modelDeleted && (run.revision?.status === "active" || pod !== null))

/** The rules of the phases. Pure: the same observation and time (Unix milliseconds) give the same decision. */
export const decide = (seen: Observation, now: number): Decision => {
  const decision =
    isWorking(seen.run.phase) && seen.run.modelDeleted
      ? act("The model was deleted.", Action.Enter({ to: "cancelled", reason: "The model was deleted.", failure: null }))
      : rules[seen.run.phase](seen, now)
  return seen.resource === null && wantsResource(seen) ? { ...decision, actions: [Action.EnsureResource(), ...decision.actions] } : decision
}
