import type { Observation } from "../observation/Observation.ts"
import { by, type Decision, wait } from "./Decision.ts"

/**
 * The host class that was chosen for the run, with its GPUs. A class of the same name with other GPUs is a different
 * class.
 */
export const chosenClass = ({ run }: Pick<Observation, "run">): string => {
  const { estimate, settings } = run.revision ?? {}
  return settings === undefined || estimate === undefined ? "of the run" : `${settings.host_class} (${estimate.gpu_count} x ${estimate.gpu_pool})`
}

/** The decision for a run whose host class was deleted. */
export const classMissing = (observation: Pick<Observation, "run">): Decision =>
  by("classMissing", wait(`The deployment waits for the host class ${chosenClass(observation)}, which does not exist or cannot be read.`))
