import { type DeploymentId, maxReplicas } from "@seatrial/domain"
import { Effect } from "effect"
import { enginePodName } from "./resources/objectNames.ts"

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

/** The names of the pods of all engines that a run may have. */
const podsOf = (id: DeploymentId): ReadonlyArray<string> => Array.from({ length: maxReplicas }, (_, ordinal) => enginePodName(id, ordinal))

/** One value for each engine, by the name of its pod. */
export class EngineMap<Value> extends Map<string, Value> implements RunStore {
  remembers(id: DeploymentId): boolean {
    return podsOf(id).some((pod) => this.has(pod))
  }
  forget(id: DeploymentId): Effect.Effect<void> {
    return Effect.sync(() => {
      for (const pod of podsOf(id)) this.delete(pod)
    })
  }
}
