import type { DeploymentId } from "@seatrial/domain"

/**
 * For each run, the times that lay in the future when this operator first read them, and when that was (Unix
 * milliseconds). Such times were written before a clock was set back. Durations are counted from the first reading, so
 * that they last no longer than usual. Kept only in memory.
 */
export type FutureTimes = Map<DeploymentId, ReadonlyMap<string, number>>

/** For one pass over a run. Times that the pass does not read are forgotten. */
export const readTimes = (known: FutureTimes, id: DeploymentId, now: number) => {
  const before = known.get(id)
  const noted = new Map<string, number>()
  /** The first reading of each time that lay in the future. */
  const firstReadings = new Map<number, number>()
  known.delete(id)
  return {
    firstReadings,
    /**
     * The time, or when it was first read. `of`: the name of the time, because several fields may hold the same value.
     */
    at: (of: string, time: number): number => {
      const key = `${of} ${time}`
      const first = before?.get(key) ?? (time > now ? now : null)
      if (first === null) return time
      const at = Math.min(first, now)
      noted.set(key, at)
      firstReadings.set(time, Math.max(firstReadings.get(time) ?? at, at))
      known.set(id, noted)
      return at
    }
  }
}
