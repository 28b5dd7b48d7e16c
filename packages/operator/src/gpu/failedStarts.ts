import type { FailedStarts } from "@seatrial/store"
import type { WatchedPod } from "../gather/watched.ts"

const millis = (time: string | null | undefined): number | null => {
  const parsed = Date.parse(time ?? "")
  return Number.isNaN(parsed) ? null : parsed
}

const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

/** The kubelet's back-off as stated in its message, milliseconds; null if it states none. */
const backOff = (message: string): number | null => {
  const [, text = ""] = /back-off ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)/.exec(message) ?? []
  const parts = [...text.matchAll(/([\d.]+)(h|ms|m|s)/g)]
  return parts.length === 0 ? null : parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0), 0)
}

/**
 * Detects an engine whose container ends at every start: it ended last without becoming ready. Null if it has not
 * ended, is ready, or ended after it was ready. The next start follows the kubelet's back-off.
 */
export const failedStarts = (pod: WatchedPod): FailedStarts | null => {
  const [container] = pod.status?.containerStatuses ?? []
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready")
  const last = container?.state?.terminated ?? container?.lastState?.terminated
  if (container === undefined || container.ready || pod.metadata.deletionTimestamp !== undefined) return null
  const [begun, unready, ended] = [millis(last?.startedAt), millis(ready?.lastTransitionTime), millis(last?.finishedAt)]
  if (begun === null || unready === null || begun < unready) return null
  const waiting = container.state?.waiting
  const pause = waiting?.reason === "CrashLoopBackOff" ? backOff(waiting.message ?? "") : null
  return {
    ends: container.restartCount + (container.state?.running === undefined ? 1 : 0),
    nextStartAt: pause === null || ended === null ? null : ended + pause
  }
}
