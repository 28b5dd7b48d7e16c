import type { Run } from "@seatrial/store"
import type { ObservedBoot, ObservedPod } from "../observation/ObservedPod.ts"
import { type FutureTimes, readTimes } from "./FutureTimes.ts"

/** The times of a pod from which something is counted. */
const timesOf = ({ copy, createdAt, merge, nodeDownSince, readyChangedAt, scheduledAt, startedAt, unschedulable }: ObservedPod) => [
  createdAt,
  scheduledAt,
  startedAt,
  readyChangedAt,
  nodeDownSince,
  unschedulable?.since ?? null,
  copy?.endedAt ?? null,
  merge?.endedAt ?? null
]

/** Reads the times of a run and its pod, to find those that lie in the future; see `FutureTimes`. */
export const observeTimes = (
  futureTimes: FutureTimes,
  run: Run,
  engines: ReadonlyArray<{ readonly pod: ObservedPod | null; readonly boot: ObservedBoot | null }>,
  now: number
) => {
  const times = readTimes(futureTimes, run.id, now)
  times.at(`phase ${run.history.length}`, run.phaseSince)
  for (const { boot, pod } of engines)
    for (const time of [run.endedAt, run.lastUsedAt, boot?.verdict?.at ?? null, ...(pod === null ? [] : timesOf(pod))])
      if (time !== null) times.at(pod?.uid ?? "", time)
  return times
}
