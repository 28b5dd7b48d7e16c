import { Action, act, type Decision, wait } from "./Decision.ts"
import type { PodSeen } from "./Observation.ts"

/** Another pod is made instead of one that never started, where its host class has changed since: what kept it from starting may be what was changed. */
export const replaceOutdated = ({ uid }: PodSeen, ...before: ReadonlyArray<Action>): Decision =>
  act("The host class has changed since its pod was asked for: another is asked for.", ...before, Action.RemovePod({ uid, force: false }))

/** A pod that is being deleted still has its name and its GPUs. One whose node is gone by now would be so for ever: nobody there says that it has ended. */
export const leaving = ({ lost, uid }: PodSeen): Decision =>
  lost === null
    ? wait("Waits for an earlier engine to be gone.")
    : act(`Waits for an earlier engine to be gone, which lost its place meanwhile: ${lost}.`, Action.RemovePod({ uid, force: true }))
