import { type DeploymentId, isFinished, phaseTraits } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { MergedModel } from "@seatrial/trial"
import type { Observation } from "../observation/Observation.ts"

/**
 * The answers of merged models, for runs whose checks are not done. Kept only in memory, because they are the models'
 * output. After a restart the merged model is asked again.
 */
export type MergedAnswers = Map<DeploymentId, MergedModel>

/** Whether the trial of the run compares the adapter. Nothing can be merged into a quantized base. */
const measuresFidelity = ({ engineRun, id, phase, revision }: Run): boolean =>
  revision !== null &&
  revision.facts.adapter !== undefined &&
  revision.facts.config.quantization === "none" &&
  revision.checks === null &&
  engineRun === id &&
  !isFinished(phase)

/** What the trial still needs from the merged model. Forgets answers that are no longer needed. */
export const observeMerged = (answers: MergedAnswers, run: Run): Observation["merged"] => {
  // The answers belong to the place that the run has left. An adapter is compared with answers of the same node.
  if (phaseTraits[run.phase].awaitsGpus) answers.delete(run.id)
  if (measuresFidelity(run)) return answers.has(run.id) ? "answered" : "wanted"
  answers.delete(run.id)
  return "none"
}
