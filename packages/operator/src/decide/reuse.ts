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
  if (!run.serve) return by("notServed", act("Its revision is already verified. It is not served (serve: false).", Action.Activate()))
  if (run.revision?.status === "active") return by("alreadyServes", enter("activating", "Its revision already serves."))
  if (hasEngine(observation) && pod?.ready === true) return by("engineReady", enter("activating", "Its revision is verified, and its engine is still running."))
  if (hasEngine(observation)) return by("engineStarts", enter("provisioning", "Its revision is verified, and its engine starts."))
  const place = placement(observation)
  return goTo(withPreface(place, "Its revision is verified."))
}
