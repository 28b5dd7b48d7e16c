import type { HostClass } from "@seatrial/domain"
import { Context, type Effect } from "effect"

/** The cluster's host classes, mirrored here by the operator for the programs that have no access to the cluster. */
export class HostClasses extends Context.Service<
  HostClasses,
  {
    readonly list: Effect.Effect<ReadonlyArray<HostClass>>
    /** Makes the stored set equal to the given one. Writes only what changed. */
    readonly replaceAll: (classes: ReadonlyArray<HostClass>) => Effect.Effect<void>
  }
>()("seatrial/HostClasses") {}
