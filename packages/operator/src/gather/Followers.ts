import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import type { RunStore } from "../RunStore.ts"

/** Runs that serve with another run's engine and show its state. It fills with the first pass over each run. */
export interface Followers extends RunStore {
  readonly note: (run: Pick<Run, "engineRun" | "id" | "modelDeleted" | "phase" | "revision">) => void
  /** The followers of that run's engine. */
  readonly of: (engineRun: DeploymentId) => ReadonlyArray<DeploymentId>
}

export const makeFollowers = (): Followers => {
  const engines = new Map<DeploymentId, DeploymentId>()
  const byEngine = new Map<DeploymentId, Set<DeploymentId>>()
  const remove = (id: DeploymentId): void => {
    const engine = engines.get(id)
    if (engine === undefined) return
    engines.delete(id)
    const followers = byEngine.get(engine)
    if (followers?.delete(id) === true && followers.size === 0) byEngine.delete(engine)
  }
  const add = (id: DeploymentId, engine: DeploymentId): void => {
    engines.set(id, engine)
    const followers = byEngine.get(engine)
    if (followers === undefined) byEngine.set(engine, new Set([id]))
    else followers.add(id)
  }
  return {
    note: ({ engineRun, id, modelDeleted, phase, revision }) => {
      const follows = engineRun !== id && phase === "activated" && revision?.status === "active" && !modelDeleted
      if (!follows) remove(id)
      else if (engines.get(id) !== engineRun) {
        remove(id)
        add(id, engineRun)
      }
    },
    of: (engineRun) => [...(byEngine.get(engineRun) ?? [])],
    remembers: (id) => engines.has(id),
    forget: (id) => Effect.sync(() => remove(id))
  }
}
