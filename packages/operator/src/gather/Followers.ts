import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { RunStore } from "../RunStore.ts"
import { makeRunIndex } from "./RunIndex.ts"

/** Runs that serve with another run's engine and show its state. It fills with the first pass over each run. */
export interface Followers extends RunStore {
  readonly note: (run: Pick<Run, "engineRun" | "id" | "modelDeleted" | "phase" | "revision">) => void
  /** The followers of that run's engine. */
  readonly of: (engineRun: DeploymentId) => ReadonlyArray<DeploymentId>
}

export const makeFollowers = (): Followers => {
  const { set, ...engines } = makeRunIndex()
  return {
    ...engines,
    note: ({ engineRun, id, modelDeleted, phase, revision }) =>
      set(id, engineRun !== id && phase === "activated" && revision?.status === "active" && !modelDeleted ? engineRun : null)
  }
}
