import type { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"
import type { RunStore } from "../RunStore.ts"
import { enginePodName } from "../resources/objectNames.ts"

/**
 * Created pods that no watch has shown yet, by name, with their resource version; undefined if a pass has missed the
 * pod since.
 */
export class PodExpectations extends Map<string, string | undefined> implements RunStore {
  remembers(id: DeploymentId): boolean {
    return this.has(enginePodName(id))
  }
  forget(id: DeploymentId): Effect.Effect<void> {
    return Effect.sync(() => void this.delete(enginePodName(id)))
  }
}
