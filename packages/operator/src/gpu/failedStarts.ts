import type { FailedStarts } from "@seatrial/store"
import { type ContainerStatus, conditionOf, lastExit, mainContainer, millisOf } from "../gather/podStatus.ts"
import type { WatchedPod } from "../resources/watched.ts"

const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

/** The kubelet's back-off as stated in its message, milliseconds; null if it states none. */
const backOff = (message: string): number | null => {
  const [, text = ""] = /back-off ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)/.exec(message) ?? []
  const parts = [...text.matchAll(/([\d.]+)(h|ms|m|s)/g)]
  return parts.length === 0 ? null : parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0), 0)
}

/** Whether the container ended last without becoming ready: it started after the pod was last ready. */
const endedUnready = (pod: WatchedPod, container: ContainerStatus): boolean => {
  const startedAt = millisOf(lastExit(container)?.startedAt)
  const unreadySince = millisOf(conditionOf(pod, "Ready")?.lastTransitionTime)
  return startedAt !== null && unreadySince !== null && startedAt >= unreadySince
}

/** When the kubelet starts the container again, Unix milliseconds; null if it does not say so. */
const nextStartAt = (container: ContainerStatus): number | null => {
  const waiting = container.state?.waiting
  const pause = waiting?.reason === "CrashLoopBackOff" ? backOff(waiting.message ?? "") : null
  const endedAt = millisOf(lastExit(container)?.finishedAt)
  return pause === null || endedAt === null ? null : endedAt + pause
}

/**
 * Detects an engine whose container ends at every start: it ended last without becoming ready. Null if it has not
 * ended, is ready, or ended after it was ready. The next start follows the kubelet's back-off.
 */
export const failedStarts = (pod: WatchedPod): FailedStarts | null => {
  const container = mainContainer(pod)
  if (container === undefined || container.ready || pod.metadata.deletionTimestamp !== undefined || !endedUnready(pod, container)) return null
  return { ends: container.restartCount + (container.state?.running === undefined ? 1 : 0), nextStartAt: nextStartAt(container) }
}
