import type { FetchProgress } from "./FetchProgress.ts"
import type { DownloadState } from "./ProgressLine.ts"

/** Milliseconds that the speed is averaged over. */
const window = 30_000
/** Milliseconds without data after which a download is stalled. */
const patience = 60_000

/** Computes the speed from progress. Times are Unix milliseconds and never decrease. */
export const makeSpeedMeter = () => {
  let samples: ReadonlyArray<{ readonly at: number; readonly bytes: number }> = []
  let moved: { readonly at: number; readonly bytes: number } | null = null
  return ({ bytes, totalBytes, waiting }: FetchProgress, now: number): DownloadState => {
    // Lost bytes also count as activity, because they show that the download is not stalled.
    if (moved === null || waiting || moved.bytes !== bytes) moved = { at: now, bytes }
    samples = [...samples.filter(({ at }) => at > now - window), { at: now, bytes }]
    const [first = { at: now, bytes }] = samples
    const bytesPerSecond = now > first.at ? Math.max(0, Math.round(((bytes - first.bytes) * 1000) / (now - first.at))) : 0
    const still = now - moved.at
    return {
      bytes,
      totalBytes,
      bytesPerSecond,
      secondsLeft: bytesPerSecond === 0 ? null : Math.ceil((totalBytes - bytes) / bytesPerSecond),
      stalledSeconds: still >= patience && bytes < totalBytes ? Math.floor(still / 1000) : null,
      waiting
    }
  }
}
