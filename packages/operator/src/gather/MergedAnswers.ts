import { type DeploymentId, isFinished } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { MergedModel } from "@seatrial/trial"
import type { Observation } from "../decide/Observation.ts"

/**
 * What merged models have answered, of runs whose checks are not done: they are the models' own words, and written down nowhere. After a restart the merged model is
 * asked anew.
 */
export type MergedAnswers = Map<DeploymentId, MergedModel>

/** Whether the adapter's fidelity is part of the run's trial: nothing can be merged into a quantized base. */
const measuresFidelity = ({ engineRun, id, phase, revision }: Run): boolean =>
  revision !== null &&
  revision.facts.adapter !== undefined &&
  revision.facts.config.quantization === "none" &&
  revision.checks === null &&
  engineRun === id &&
  !isFinished(phase)

/** What the run's trial still has to learn from base and adapter merged. Forgets what nobody needs any more. */
export const mergedSeen = (answers: MergedAnswers, run: Run): Observation["merged"] => {
  // They are of the place that the run has left: an adapter is compared with what the same node has answered.
  if (run.phase === "queued" || run.phase === "waiting") answers.delete(run.id)
  if (measuresFidelity(run)) return answers.has(run.id) ? "answered" : "wanted"
  answers.delete(run.id)
  return "none"
}
