import { idleSlack, wokenHold } from "./limits.ts"
import { countedAs, countedFrom, type Observation } from "./Observation.ts"

/** Whether the run's revision is what carries its model's traffic, or would if its engine were there. */
export const isServed = ({ run }: Pick<Observation, "run">): boolean =>
  run.phase === "activated" && run.revision?.status === "active" && !run.modelDisabled && !run.modelDeleted

/**
 * From when a served model idles that nobody asks for meanwhile, Unix milliseconds; null where it never does. Gateways tell of requests a little late, and an engine
 * that was woken stays for whoever woke it to come back.
 */
export const idleAt = (seen: Observation): number | null => {
  const { pod, run } = seen
  const hold = run.revision?.settings.hold_seconds
  if (!isServed(seen) || hold === undefined) return null
  // Of the revision, the same for all of its runs: that it went live is a use, and that a later run found it serving is none.
  const used = run.lastUsedAt ?? run.endedAt ?? run.phaseSince
  if (pod === null) return countedAs(seen, used) + hold * 1_000 + idleSlack
  return Math.max(countedFrom(seen, used) + hold * 1_000 + idleSlack, countedAs(seen, pod.readyChangedAt ?? pod.createdAt) + wokenHold)
}

/** Whether a served model gives its GPUs back because nobody asks for it. An engine that is on its way is let come. */
export const isIdle = (seen: Observation, now: number): boolean => {
  const at = idleAt(seen)
  if (at === null || now < at || seen.run.inFlight > 0) return false
  const { pod } = seen
  return pod === null || pod.ready || pod.deleting || pod.lost !== null || !pod.scheduled
}
