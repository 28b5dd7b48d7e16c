import type { DeploymentId, ModelId } from "@seatrial/domain"
import { maxQueueWakeUps } from "../../limits.ts"
import type { Growth } from "../../observation/ObservedEngine.ts"

/** What other runs must know of a model that has, or lacks, engines above its first. */
export interface FleetNote {
  readonly organization: string
  /** GPUs of its engines above the first. */
  readonly otherGpus: number
  /** GPUs of the engines that the model may lose. See `keptEngines`. */
  readonly spareGpus: number
  /** Why it lacks engines; null if it lacks none. */
  readonly lacks: Growth["limit"]
  /** GPUs that it gives to queued runs. */
  readonly yieldingGpus: number
  /** The pods of an earlier revision whose engines end. Absent if there are none. */
  readonly leaving?: { readonly model: ModelId; readonly pods: ReadonlyArray<string> }
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
    get: (id: DeploymentId): FleetNote | undefined => fleets.get(id),
    /** The notes about models other than this one. */
    except: (own: DeploymentId): ReadonlyArray<FleetNote> => [...fleets].flatMap(([id, note]) => (id === own ? [] : note)),
    yielders: (): ReadonlyArray<DeploymentId> => having(({ otherGpus }) => otherGpus > 0),
    /** The first few, so that the cost of a change does not depend on their number. */
    growing: (): ReadonlyArray<DeploymentId> => having(({ lacks }) => lacks !== null).slice(0, maxQueueWakeUps)
  }
}
