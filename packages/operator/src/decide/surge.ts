import { maxSurgeByDefault, moveInterval } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import type { Decision } from "./Decision.ts"

/** Good engines that a model keeps while it moves to a new revision. */
export const leastServing = ({ podClass, run }: Pick<Observation, "podClass" | "run">): number => {
  const { maxSurge = maxSurgeByDefault, maxUnavailable = 0 } = podClass ?? {}
  const desired = run.replicas ?? 1
  return Math.max(1, desired - (maxSurge === 0 ? Math.max(1, maxUnavailable) : maxUnavailable))
}

/**
 * The observation with room for only as many engines as the model may have while engines of earlier revisions serve. An
 * engine of an earlier revision leaves when a new one serves.
 */
export const withinSurge = (observation: Observation): Observation => {
  const { engines, growth, pod, podClass, run } = observation
  const { earlier = 0 } = run
  if (earlier === 0) return observation
  const present = engines.filter((engine) => engine.pod !== null).length + (pod === null ? 0 : 1)
  const room = Math.max(0, (run.replicas ?? 1) + (podClass?.maxSurge ?? maxSurgeByDefault) - present - earlier)
  return room >= growth.room ? observation : { ...observation, growth: { ...growth, room, limit: "surge" } }
}

/** While engines of earlier revisions serve, another pass follows soon. Nothing else reports that they ended. */
export const followed = ({ run: { earlier = 0 } }: Pick<Observation, "run">, decision: Decision, now: number): Decision =>
  earlier === 0 ? decision : { ...decision, requeueAt: Math.min(decision.requeueAt ?? Number.POSITIVE_INFINITY, now + moveInterval) }

/** Names the engines of earlier revisions that serve; empty if there are none. */
export const describeEarlier = ({ run: { earlier = 0 } }: Pick<Observation, "run">): string =>
  earlier === 0 ? "" : ` ${earlier} of the earlier revision ${earlier === 1 ? "still serves" : "still serve"}.`
