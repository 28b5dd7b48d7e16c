import { Action, act, type Decision } from "./Decision.ts"
import type { PodSeen } from "./Observation.ts"

/** Another pod is made instead of one that never started, where its host class has changed since: what kept it from starting may be what was changed. */
export const replaceOutdated = ({ uid }: PodSeen, ...before: ReadonlyArray<Action>): Decision =>
  act("The host class has changed since its pod was asked for: another is asked for.", ...before, Action.RemovePod({ uid, force: false }))
