import { candidateHold } from "../limits.ts"

/**
 * Until when a verified revision that does not serve keeps its GPUs, Unix milliseconds. `endedAt`: when its run ended.
 * `holdSeconds`: null if the request did not set it.
 */
export const heldUntil = (endedAt: number, holdSeconds: number | null): number => endedAt + (holdSeconds === null ? candidateHold : holdSeconds * 1_000)
