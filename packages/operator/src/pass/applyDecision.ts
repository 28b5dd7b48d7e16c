import type { KubeError } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import { applyActions } from "../apply/apply.ts"
import type { Action } from "../decide/Decision.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** The state after the actions of a decision. */
export interface AppliedDecision {
  /** Why the API server refused an object; null if it refused none. The actions after that one were not applied. */
  readonly refused: string | null
  /** The custom resource; null if there is none. */
  readonly resource: WatchedDeployment | null
  /** The run; null if it must be read again. */
  readonly run: Run | null
  /** Whether the run's row changed, so that the pass continues. */
  readonly isMoved: boolean
}

/** Actions that change a run's row. */
const moving: ReadonlySet<Action["_tag"]> = new Set(["Enter", "Activate", "Publish", "RecordEngineImage"])

const isRefused = (error: KubeError) => error.reason === "Invalid" || error.reason === "Denied" || error.reason === "NotFound"

const logUnpaidRelease = ({ decision: { actions, message }, run: { id, orgSlug, phase }, unfunded }: DecidedRun) =>
  phase === "activated" && unfunded !== null && actions.some(({ _tag }) => _tag === "RemovePod")
    ? Effect.logWarning(`the engine of ${id} releases its GPUs: ${message}`).pipe(Effect.annotateLogs({ organization: orgSlug, phase, reason: unfunded }))
    : Effect.void

/**
 * Performs the actions of a decision. An object that the API server refuses does not fail the pass: someone must change
 * something first.
 */
export const applyDecision = Effect.fnUntraced(function* ({ cluster, memory, recordHold, settings }: Reconciler, decided: DecidedRun) {
  const { decision, gathered, run } = decided
  yield* logUnpaidRelease(decided)
  const { budgetExpectations, podExpectations, shown } = memory
  const isMoved = decision.actions.some(({ _tag }) => moving.has(_tag))
  return yield* applyActions({ cluster, budgetExpectations, podExpectations, settings, shown, recordHold }, gathered, decision.actions).pipe(
    Effect.annotateLogs({ organization: run.orgSlug, phase: run.phase }),
    Effect.map((applied): AppliedDecision => ({ ...applied, refused: null, isMoved })),
    Effect.catchIf(isRefused, ({ message }) => {
      const refusal: AppliedDecision = { refused: message, resource: gathered.resource, run: null, isMoved: false }
      return Effect.as(Effect.logWarning(`the API server refused an object of ${run.id}: ${message}`), refusal)
    })
  )
})
