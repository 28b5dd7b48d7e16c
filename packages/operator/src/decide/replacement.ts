import type { Observation } from "../observation/Observation.ts"

/** Whether the serving revision, which belongs to another run, holds GPUs that the run could use. */
const holdsOurs = ({ predecessorHolds, run }: Observation): boolean =>
  predecessorHolds && run.serve && run.predecessor !== null && run.predecessor.hostClass === run.revision?.settings.host_class

/**
 * Whether the run may take the GPUs of the serving revision: its host class allows that, or the revision has no traffic
 * because its answers differ from the verified ones and every attempt without GPUs is exhausted. No engine is stopped
 * for GPUs that the run could not use, for example on a cordoned node.
 */
export const canReplace = (observation: Observation): boolean =>
  !observation.run.replaces &&
  (observation.podClass?.rollout === "replace" || observation.run.predecessor?.differs === true) &&
  observation.podClass?.queueName === null &&
  holdsOurs(observation) &&
  (observation.predecessorPlace === null || observation.freeSlots > observation.ahead)

export const gpusInWords = (gpus: number): string => `${gpus} ${gpus === 1 ? "GPU" : "GPUs"}`

/** What to do if the run waits for GPUs that its predecessor holds; empty if it does not. */
export const describePredecessor = (observation: Observation): string => {
  const { podClass, run } = observation
  if (!holdsOurs(observation) || run.predecessor === null || run.replaces) return ""
  const name = run.revision?.settings.host_class
  const held = `The serving revision of this model (${run.predecessor.run}) holds ${gpusInWords(run.predecessor.gpus)}.`
  return podClass?.rollout === "replace"
    ? ` ${held}${observation.predecessorPlace === null ? "" : ` Stopping that revision would not help: ${observation.predecessorPlace}.`}`
    : ` ${held} The host class ${name} has \`rollout: surge\`, so the new revision waits for other free GPUs. Free some GPUs, or set \`rollout: replace\`. Then the serving revision stops first.`
}
