import type { Observation } from "../observation/Observation.ts"
import { Action, act, by, type Decision, enter } from "./Decision.ts"
import { goTo, placement, withPreface } from "./placement.ts"

/** Whether an earlier run created and verified the revision, and owns the engine. */
export const reuses = ({ run }: Observation): boolean => run.engineRun !== run.id

/** Whether the engine to reuse exists. */
export const hasEngine = ({ pod }: Observation): boolean => pod !== null && !pod.deleting && pod.lost === null

/**
 * The next phase of a run whose revision is already verified. Download and trial are skipped. The run ends if nothing
 * is to be served. It goes live if the engine exists. Otherwise it starts the engine.
 */
export const reuse = (observation: Observation): Decision => {
  const { pod, run } = observation
  if (!run.serve) return by("notServed", act("The revision is already verified. It gets no traffic (serve: false).", Action.Activate()))
  if (run.revision?.status === "active") return by("alreadyServes", enter("activating", "The revision already serves."))
  if (hasEngine(observation) && pod?.ready === true) return by("engineReady", enter("activating", "The revision is verified, and its engine is still running."))
  if (hasEngine(observation)) return by("engineStarts", enter("provisioning", "The revision is verified, and its engine starts."))
  const place = placement(observation)
  return goTo(withPreface(place, "The revision is verified."))
}
