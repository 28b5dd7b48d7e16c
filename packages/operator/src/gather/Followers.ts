import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"

/**
 * Runs that serve with another run's engine and show its state. Kept only in memory: it fills again with the first pass
 * over each run.
 */
export const makeFollowers = () => {
  const byEngine = new Map<DeploymentId, Set<DeploymentId>>()
  return {
    note: ({ engineRun, id, modelDeleted, phase, revision }: Pick<Run, "engineRun" | "id" | "modelDeleted" | "phase" | "revision">): void => {
      if (engineRun === id) return
      const known = byEngine.get(engineRun)
      if (phase === "activated" && revision?.status === "active" && !modelDeleted) {
        if (known === undefined) byEngine.set(engineRun, new Set([id]))
        else known.add(id)
      } else if (known?.delete(id) === true && known.size === 0) byEngine.delete(engineRun)
    },
    /** The followers of that run's engine. */
    of: (engineRun: DeploymentId): ReadonlyArray<DeploymentId> => [...(byEngine.get(engineRun) ?? [])]
  }
}
export type Followers = ReturnType<typeof makeFollowers>
