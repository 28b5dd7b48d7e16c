import { type Decision, wait } from "./Decision.ts"
import type { Observation } from "./Observation.ts"

/** What a run waits for whose host class was deleted. */
export const classAway = ({ run }: Pick<Observation, "run">): Decision =>
  wait(`Waits for the host class ${run.revision?.settings.host_class}, which does not exist now.`)
