import { Action, act, type Decision, enter } from "./Decision.ts"
import type { Observation } from "./Observation.ts"
import { goTo, placement, withPreface } from "./placement.ts"

/** Whether the run's revision was made and verified by an earlier run, which has the engine. */
export const reuses = ({ run }: Observation): boolean => run.engineRun !== run.id

/** Whether the engine that the run is to reuse is there: held since its trial, or brought back meanwhile. */
export const hasEngine = ({ pod }: Observation): boolean => pod !== null && !pod.deleting && pod.lost === null

/**
 * Where a run goes whose revision is verified already: its weights are there and its trial is passed. It ends where nothing is to be served, goes live where its
 * engine is held or serves, and starts the engine otherwise.
 */
export const reuse = (seen: Observation): Decision => {
  const { pod, run } = seen
  if (!run.serve) return act("Its revision is verified already; it is not to be served.", Action.Activate())
  if (run.revision?.status === "active") return enter("activating", "Its revision serves already.")
  if (hasEngine(seen) && pod?.ready === true) return enter("activating", "Its revision is verified, and its engine is still held.")
  if (hasEngine(seen)) return enter("provisioning", "Its revision is verified, and its engine starts.")
  const place = placement(seen)
  return goTo(withPreface(place, "Its revision is verified."))
}
