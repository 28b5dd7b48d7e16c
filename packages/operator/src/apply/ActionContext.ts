import type { KubeError } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import type { Action } from "../decide/Decision.ts"
import type { Gathered, GatherFrom } from "../gather/gather.ts"
import type { HoldKeeper } from "../gpu/keepHolds.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { EngineOwner } from "./engineOwner.ts"
import type { StatusWrites } from "./patchStatus.ts"

/** The custom resource and the run after an action. The run is null if it must be read again. */
export interface Applied {
  readonly resource: WatchedDeployment | null
  readonly run: Run | null
}

/** What the operator holds to perform actions. */
export interface Applying extends Pick<GatherFrom, "cluster">, Pick<GatherFrom["memory"], "budgetExpectations" | "podExpectations"> {
  readonly settings: OperatorSettings
  readonly engineOwner: EngineOwner
  readonly statusWrites: StatusWrites
  readonly recordHold: HoldKeeper["record"]
}

/** What one action depends on. `current`: the result of the actions before it. */
export interface ActionContext {
  readonly applying: Applying
  readonly gathered: Gathered
  readonly current: Applied
}

/** The action of a decision with that name. */
export type ActionOf<Tag extends Action["_tag"]> = Extract<Action, { readonly _tag: Tag }>

/**
 * Whether the object already exists. A concurrent change of a quota is a conflict too, but then nothing was created.
 */
export const alreadyExists = (error: KubeError): boolean => error.statusReason === "AlreadyExists"

/** The run lacks something that its phase requires. */
export const missing = (run: Run, what: string) => Effect.die(new Error(`${run.id} in ${run.phase} has no ${what}`))
