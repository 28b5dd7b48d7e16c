import { candidateHold } from "./limits.ts"
import type { Observation } from "./Observation.ts"

/** Until when a verified revision that does not serve keeps its GPUs, Unix milliseconds. `endedAt`: when its run ended. `holdSeconds`: null where nothing was asked. */
export const heldUntil = (endedAt: number, holdSeconds: number | null): number => endedAt + (holdSeconds === null ? candidateHold : holdSeconds * 1_000)

/** What is to be done where a run waits for GPUs that candidates of its own model hold; empty where none does. `limit`: whether it waits for any of its organization's. */
export const candidatesInTheWay = ({ candidates }: Observation, limit = false): string =>
  candidates
    .filter(({ inPlace }) => limit || inPlace)
    .map(
      ({ gpus, pod, run, until }) =>
        ` The model's verified candidate (${run}) holds ${gpus} until ${new Date(until).toISOString()}, by its hold_seconds: they are free sooner where somebody deletes its pod ${pod}; the weights and the revision stay.`
    )
    .join("")
