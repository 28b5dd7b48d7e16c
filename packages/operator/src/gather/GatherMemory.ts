import type { Run } from "@seatrial/store"
import type { Effect } from "effect"
import type { Refusal } from "../observation/Refusal.ts"
import type { StartedWork } from "../observation/work.ts"
import type { BootVerdicts, TextTurns } from "./BootVerdicts.ts"
import type { Pool } from "./capacity/Pool.ts"
import type { FutureTimes } from "./FutureTimes.ts"
import type { HeldReports } from "./HeldReports.ts"
import type { MergedAnswers } from "./MergedAnswers.ts"
import type { ModelLoads } from "./ModelLoads.ts"
import type { KnownMove } from "./observeMove.ts"
import type { ReferenceUsers } from "./references/ReferenceUsers.ts"

/** The node of a run's pod was first missing at that time, Unix milliseconds. */
export interface MissingNode {
  /** Of the pod. */
  readonly uid: string
  readonly since: number
}

/** What `gather` reads of the operator's memory, and keeps there. */
export interface GatherMemory {
  readonly pool: Pool
  readonly background: { readonly state: (id: Run["id"], ordinal?: number) => Effect.Effect<StartedWork> }
  /**
   * When the containers of runs were first observed not to start, Unix milliseconds. After a restart the deadline is
   * later at worst.
   */
  readonly blockedSince: Map<Run["id"], number>
  /** What the API server refused in the last pass over each run. After a restart the deadline is later at worst. */
  readonly refusals: Map<Run["id"], Refusal>
  /**
   * When the nodes of engines were first missing, by the names of their pods. After a restart the deadline is later at
   * worst.
   */
  readonly missingNodes: Map<string, MissingNode>
  /**
   * When the last endpoint of a revision was withdrawn, for revisions that give their engine back. After a restart
   * draining takes longer at worst.
   */
  readonly withdrawnSince: Map<Run["id"], number>
  /**
   * Since when single engines have no endpoint, by the names of their pods: each engine above the first, and the
   * first engine if it leaves alone. After a restart draining takes longer at worst.
   */
  readonly idleEngines: Map<string, number>
  /**
   * Since when engines of new revisions are ready, by the names of their pods. After a restart a move takes longer at
   * worst.
   */
  readonly readySince: Map<string, number>
  readonly loads: ModelLoads
  readonly moves: Map<Run["id"], KnownMove>
  readonly futureTimes: FutureTimes
  readonly bootVerdicts: BootVerdicts
  readonly textTurns: TextTurns
  readonly mergedAnswers: MergedAnswers
  readonly heldReports: HeldReports
  readonly references: ReferenceUsers
  /** See `PodExpectations`. */
  readonly podExpectations: Map<string, string | undefined>
  /** When disruption budgets were created that no watch has shown yet, Unix milliseconds. */
  readonly budgetExpectations: Map<Run["id"], number>
  /** Recently released runs. */
  readonly released: Set<Run["id"]>
}
