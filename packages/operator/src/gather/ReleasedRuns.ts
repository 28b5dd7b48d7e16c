import type { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"
import type { RunStore } from "../RunStore.ts"

/** The most runs to remember. To forget a release costs only a write that changes nothing. */
const maxRuns = 10_000

/** Recently released runs: the release of their objects is recorded. */
export class ReleasedRuns extends Set<DeploymentId> implements RunStore {
  override add(id: DeploymentId): this {
    if (this.size >= maxRuns) this.clear()
    return super.add(id)
  }
  remembers(id: DeploymentId): boolean {
    return this.has(id)
  }
  forget(id: DeploymentId): Effect.Effect<void> {
    return Effect.sync(() => void this.delete(id))
  }
}
