import type { DeploymentId } from "@seatrial/domain"

/**
 * Of each run the times that lay in the future when this operator saw them first, as those do that were written before its clock was set back, and when that was, Unix
 * milliseconds. What is counted from such a time is counted from there: it lasts no longer than it would anyway. Only a memory.
 */
export type FutureTimes = Map<DeploymentId, ReadonlyMap<string, number>>

/** For one look at a run; what this look does not ask about is forgotten. */
export const lookAtTimes = (known: FutureTimes, id: DeploymentId, now: number) => {
  const before = known.get(id)
  const noted = new Map<string, number>()
  /** When those of them were first seen that then lay in the future. */
  const seen = new Map<number, number>()
  known.delete(id)
  return {
    seen,
    /** The time, or when it was first seen. `of`: what it is a time of, as the same may be that of several things. */
    at: (of: string, time: number): number => {
      const key = `${of} ${time}`
      const first = before?.get(key) ?? (time > now ? now : null)
      if (first === null) return time
      const at = Math.min(first, now)
      noted.set(key, at)
      seen.set(time, Math.max(seen.get(time) ?? at, at))
      known.set(id, noted)
      return at
    }
  }
}
