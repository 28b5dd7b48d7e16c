import { candidateHold } from "./limits.ts"
import type { Observation } from "./Observation.ts"

/**
 * Until when a verified revision that does not serve keeps its GPUs, Unix milliseconds. `endedAt`: when its run ended.
 * `holdSeconds`: null if the request did not set it.
 */
export const heldUntil = (endedAt: number, holdSeconds: number | null): number => endedAt + (holdSeconds === null ? candidateHold : holdSeconds * 1_000)

/**
 * What to do if the run waits for GPUs that candidates of its own model hold; empty if none does. `limit`: whether the
 * run waits because of its organization's limit.
 */
export const describeCandidates = ({ candidates }: Observation, limit = false): string =>
  candidates
    .filter(({ inPlace }) => limit || inPlace)
    .map(
      ({ gpus, pod, run, until }) =>
        ` The model's verified candidate (${run}) holds ${gpus} until ${new Date(until).toISOString()}, as its hold_seconds set. To free them sooner, delete its pod ${pod}; the weights and the revision stay.`
    )
    .join("")
