import { Duration } from "effect"
import type { HubUnavailable } from "./failures.ts"

/** Longest pause between two requests of a download, in milliseconds, of our own and where the hub names one. */
const longestPause = 30_000
const longestAsked = 300_000

/** Milliseconds that a download waits after the so many-th failure in a row: as long as the hub asks for, else longer each time. */
export const pauseBefore = (retryDelay: Duration.Duration, failures: number, { retryAfter }: HubUnavailable): number =>
  retryAfter === undefined ? Math.min(Duration.toMillis(retryDelay) * 2 ** Math.min(20, failures - 1), longestPause) : Math.min(retryAfter, longestAsked)
