import type { ObservedPod } from "../observation/ObservedPod.ts"
import { Action, act, by, type Decision, wait } from "./Decision.ts"

/** Replaces a pod that never started if its host class has changed since. The change may remove the cause. */
export const replaceOutdated = ({ uid }: ObservedPod, ...before: ReadonlyArray<Action>): Decision =>
  by(
    "classChanged",
    act("The host class has changed since the pod was requested. Another pod is requested.", ...before, Action.RemovePod({ uid, force: false }))
  )

/**
 * A pod that is being deleted still holds its name and its GPUs. If its node is gone, no kubelet confirms its end, so
 * the deletion is forced.
 */
export const leaving = ({ lost, uid }: ObservedPod): Decision =>
  by(
    "engineLeaving",
    lost === null
      ? wait("The deployment waits for an earlier engine to end.")
      : act(`The deployment waits for an earlier engine to end. That engine was evicted: ${lost}.`, Action.RemovePod({ uid, force: true }))
  )
