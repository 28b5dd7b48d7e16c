import type { DeploymentId } from "@seatrial/domain"
import type { Effect } from "effect"
import type { EngineOwner } from "../apply/engineOwner.ts"
import type { GatherFrom } from "../gather/gather.ts"
import type { HoldKeeper } from "../gpu/keepHolds.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { RunMemory } from "../RunMemory.ts"
import type { StartWork } from "../work/startWork.ts"

/** What every pass uses. What it remembers of runs is in `memory`, and nowhere else. */
export interface Reconciler extends GatherFrom {
  readonly settings: OperatorSettings
  readonly memory: RunMemory
  readonly recordHold: HoldKeeper["record"]
  readonly engineOwner: EngineOwner
  /** Requests a pass over another run. */
  readonly enqueue: (id: DeploymentId) => Effect.Effect<void>
  /** Runs that wait for a pass. */
  readonly backlog: () => number
  readonly start: StartWork
}
