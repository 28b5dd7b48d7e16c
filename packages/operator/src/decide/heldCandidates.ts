import type { Observation } from "../observation/Observation.ts"
import { gpusInWords } from "./replacement.ts"

/**
 * What to do if the run waits for GPUs that candidates of its own model hold; empty if none does. `limit`: whether the
 * run waits because of its organization's limit.
 */
export const describeCandidates = ({ candidates }: Observation, limit = false): string =>
  candidates
    .filter(({ inPlace }) => limit || inPlace)
    .map(
      ({ gpus, pod, run, until }) =>
        ` The model's verified candidate (${run}) holds ${gpusInWords(gpus)} until ${new Date(until).toISOString()}, the end of its hold time. To free these GPUs sooner, delete the pod ${pod}. The weights and the revision stay.`
    )
    .join("")
