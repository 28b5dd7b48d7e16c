import { drainInterval, drainLimit, drainTime } from "../limits.ts"
import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import { Action, act, type Decision, wait } from "./Decision.ts"
import { onEngine } from "./onEngine.ts"
import { withdraw } from "./withdraw.ts"

const isLost = ({ pod }: Observation): boolean => pod !== null && pod.lost !== null

/**
 * The pod is deleted once. If it is already being deleted on a node that is gone, no kubelet confirms that it ended, so
 * the deletion is forced.
 */
const removePod = ({ pod }: Observation): ReadonlyArray<Action> =>
  pod === null || (pod.deleting && pod.lost === null) ? [] : [Action.RemovePod({ uid: pod.uid, force: pod.lost !== null })]

const removals = (observation: Observation, isRemoved: (engine: Observation) => boolean): ReadonlyArray<Action> =>
  enginesOf(observation).flatMap(({ alone, ordinal }) => (isRemoved(alone) ? onEngine(ordinal, removePod(alone)) : []))

/** Deletes the pods of all engines. */
export const removePods = (observation: Observation): ReadonlyArray<Action> => removals(observation, () => true)

/** Deletes the pods of all engines above the first. */
export const removeOthers = (observation: Observation): ReadonlyArray<Action> =>
  observation.engines.length === 0 ? [] : removePods({ ...observation, pod: null })

const finishing = "The engine finishes its last requests."

/**
 * Ends engines that must give their GPUs back. They get no new requests, finish the current ones, and are then deleted.
 * `message`: why, as shown when they are gone.
 */
export const draining = (observation: Observation, now: number, message: string): Decision => {
  const lost = removals(observation, isLost)
  const live = removals(observation, (engine) => !isLost(engine))
  const withdrawal = withdraw(observation)
  if (live.length === 0) return act(message, ...withdrawal, ...lost)
  if (withdrawal.length > 0) return { ...act(finishing, ...withdrawal, ...lost), requeueAt: now + drainTime }
  const since = observation.withdrawnAt ?? now
  const waiting = (until: number): Decision => ({ ...wait(finishing, until), actions: lost })
  if (now < since + drainTime) return waiting(since + drainTime)
  if (observation.run.inFlight > 0 && now < since + drainLimit) return waiting(Math.min(now + drainInterval, since + drainLimit))
  return act(message, ...lost, ...live)
}
