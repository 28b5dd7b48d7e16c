import { Duration } from "effect"
import type { HubUnavailable } from "./failures.ts"

/**
 * Maximum pauses between two requests of a download in milliseconds: the download's own pause, and a pause that the hub
 * requests.
 */
const longestPause = 30_000
const maxRetryAfterMillis = 300_000

/**
 * Milliseconds to wait after this number of consecutive failures: as long as the hub asks for, otherwise longer each
 * time.
 */
export const pauseBefore = (retryDelay: Duration.Duration, failures: number, { retryAfter }: HubUnavailable): number =>
  retryAfter === undefined ? Math.min(Duration.toMillis(retryDelay) * 2 ** Math.min(20, failures - 1), longestPause) : Math.min(retryAfter, maxRetryAfterMillis)
