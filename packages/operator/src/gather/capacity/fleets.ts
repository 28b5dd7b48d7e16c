import type { DeploymentId } from "@seatrial/domain"
import { maxQueueWakeUps } from "../../limits.ts"

/** What other runs must know of a model that has, or lacks, engines above its first. */
export interface FleetNote {
  readonly hasOthers: boolean
  readonly lacksSome: boolean
  /** GPUs that it gives to queued runs. */
  readonly yieldingGpus: number
}

/** The models that have, or lack, engines above their first. */
export const makeFleets = () => {
  const fleets = new Map<DeploymentId, FleetNote>()
  const having = (holds: (note: FleetNote) => boolean) => [...fleets].flatMap(([id, note]) => (holds(note) ? [id] : []))
  return {
    note: (id: DeploymentId, note: FleetNote | null): void => {
      if (note === null) fleets.delete(id)
      else fleets.set(id, note)
    },
    has: (id: DeploymentId): boolean => fleets.has(id),
    /** GPUs that models other than this one give to queued runs. */
    yieldingGpus: (except: DeploymentId): number => [...fleets].reduce((sum, [id, note]) => sum + (id === except ? 0 : note.yieldingGpus), 0),
    yielders: (): ReadonlyArray<DeploymentId> => having(({ hasOthers }) => hasOthers),
    /** The first few, so that the cost of a change does not depend on their number. */
    growing: (): ReadonlyArray<DeploymentId> => having(({ lacksSome }) => lacksSome).slice(0, maxQueueWakeUps)
  }
}
