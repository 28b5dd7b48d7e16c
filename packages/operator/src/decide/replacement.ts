import type { Observation } from "./Observation.ts"

/** Whether what the model serves now, another run's, holds GPUs that the run could be placed on. */
const holdsOurs = ({ predecessorHolds, run }: Observation): boolean =>
  predecessorHolds && run.serve && run.predecessor !== null && run.predecessor.hostClass === run.revision?.settings.host_class

/**
 * Whether the run may take the GPUs of what the model serves: where its host class says so, or that has no traffic since it answers otherwise than what was verified,
 * and all that can be tried without GPUs has been. Nothing is stopped for GPUs that the run could not have, as on a node that takes no new pods.
 */
export const canReplace = (seen: Observation): boolean =>
  !seen.run.replaces &&
  (seen.podClass?.rollout === "replace" || seen.run.predecessor?.differs === true) &&
  seen.podClass?.queueName === null &&
  holdsOurs(seen) &&
  (seen.predecessorPlace === null || seen.freeSlots > seen.ahead)

/** What is to be done where a run waits for GPUs that its predecessor holds; empty where it does not. */
export const predecessorInTheWay = (seen: Observation): string => {
  const { podClass, run } = seen
  if (!holdsOurs(seen) || run.predecessor === null || run.replaces) return ""
  const name = run.revision?.settings.host_class
  const held = `What serves this model (${run.predecessor.run}) holds ${run.predecessor.gpus}`
  return podClass?.rollout === "replace"
    ? ` ${held}${seen.predecessorPlace === null ? "" : `, and is not stopped for them: ${seen.predecessorPlace}`}.`
    : ` ${held}, and strategy surge waits for spare ones: free some, or set rollout: replace on host class ${name}, which stops what serves first.`
}
