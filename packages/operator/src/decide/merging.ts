import { bootRestarts, copyDeadline } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { type Decision, fail, wait } from "./Decision.ts"

/** When all steps before the engine's start had ended, Unix milliseconds; null if none has. */
export const preparedAt = ({ copy, merge }: ObservedPod): number | null => {
  const times = [copy?.endedAt, merge?.endedAt].flatMap((time) => time ?? [])
  return times.length === 0 ? null : Math.max(...times)
}

/** Waits for the merge, at the latest until its deadline. */
const awaitMerge = (observation: Observation, pod: ObservedPod, now: number): Decision => {
  const deadline = countedFrom(observation, observation.run.phaseSince, pod.createdAt, pod.scheduledAt, pod.copy?.endedAt ?? null) + copyDeadline
  if (now < deadline) return wait("Seatrial merges the adapter into its base, to compare the adapter with the merged model.", deadline)
  return fail(
    "fidelity_not_run",
    `The adapter was not merged into its base within ${copyDeadline / 3_600_000} hours. Deploy again; if the problem persists, use a repository with the adapter merged into its base.`
  )
}

/** The decision while an adapter is merged into its base. Null if the merge is done or has not started. */
export const merging = (observation: Observation, now: number): Decision | null => {
  const { pod } = observation
  const merge = pod?.merge ?? null
  if (pod === null || merge === null || merge.done) return null
  const { failure } = merge
  if (failure !== null && (merge.final === true || merge.failures > bootRestarts)) return fail(failure.code, failure.text)
  if (merge.running) return awaitMerge(observation, pod, now)
  return failure === null ? null : wait(`The adapter could not be merged into its base: ${failure.text} Seatrial retries the merge.`)
}
