import type { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"

/** A part of what the operator remembers of runs between passes; see `RunMemory`. */
export interface RunStore {
  /** Whether anything is remembered of the run. */
  readonly remembers: (id: DeploymentId) => boolean
  readonly forget: (id: DeploymentId) => Effect.Effect<void>
}

/** One value for each run. */
export class RunMap<Value> extends Map<DeploymentId, Value> implements RunStore {
  remembers(id: DeploymentId): boolean {
    return this.has(id)
  }
  forget(id: DeploymentId): Effect.Effect<void> {
    return Effect.sync(() => void this.delete(id))
  }
}
