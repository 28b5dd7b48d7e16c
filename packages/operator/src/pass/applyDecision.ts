import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import { applyActions, type RefusedAction } from "../apply/apply.ts"
import type { Action } from "../decide/Decision.ts"
import type { Refusal } from "../observation/Refusal.ts"
import type { RunMemory } from "../RunMemory.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** The state after the actions of a decision. */
export interface AppliedDecision {
  /**
   * What the API server refused; null if it refused nothing. The actions after that one were not applied, except if it
   * is optional.
   */
  readonly refusal: Refusal | null
  /** The custom resource; null if there is none. */
  readonly resource: WatchedDeployment | null
  /** The run; null if it must be read again. */
  readonly run: Run | null
  /** Whether the run's row changed, so that the pass continues. */
  readonly isMoved: boolean
}

/** Actions that change a run's row. */
const moving: ReadonlySet<Action["_tag"]> = new Set(["Enter", "Activate", "Publish", "RecordEngineImage", "SetReplicas", "MoveBack"])

/** Remembers the refusal since its first time, or that nothing is refused any more. */
const rememberRefusal = ({ refusals }: RunMemory, { now, run }: DecidedRun, refused: RefusedAction | null): Refusal | null => {
  const before = refusals.get(run.id)
  if (refused === null) {
    refusals.delete(run.id)
    return null
  }
  const refusal = { ...refused, since: before?.object === refused.object ? before.since : now }
  refusals.set(run.id, refusal)
  return refusal
}

const logUnpaidRelease = ({ decision: { actions, message }, run: { id, orgSlug, phase }, unfunded }: DecidedRun) =>
  phase === "activated" && unfunded !== null && actions.some(({ _tag }) => _tag === "RemovePod")
    ? Effect.logWarning(`the engine of ${id} releases its GPUs: ${message}`).pipe(Effect.annotateLogs({ organization: orgSlug, phase, reason: unfunded }))
    : Effect.void

/**
 * Performs the actions of a decision. An object that the API server refuses does not fail the pass: someone must change
 * something first.
 */
export const applyDecision = Effect.fnUntraced(function* ({ cluster, engineOwner, memory, recordHold, settings }: Reconciler, decided: DecidedRun) {
  const { decision, gathered, run } = decided
  yield* logUnpaidRelease(decided)
  const { budgetExpectations, podExpectations, statusWrites } = memory
  const isMoved = decision.actions.some(({ _tag }) => moving.has(_tag))
  return yield* applyActions(
    { cluster, engineOwner, budgetExpectations, podExpectations, settings, statusWrites, recordHold },
    gathered,
    decision.actions
  ).pipe(
    Effect.annotateLogs({ organization: run.orgSlug, phase: run.phase }),
    Effect.map(({ refused, ...applied }): AppliedDecision => {
      const refusal = rememberRefusal(memory, decided, refused)
      return { ...applied, refusal, isMoved: isMoved && (refusal === null || refusal.kind === "optional") }
    }),
    Effect.tap(({ refusal }) =>
      refusal === null || refusal.since !== decided.now
        ? Effect.void
        : Effect.logWarning(`the API server refused ${refusal.object} of ${run.id}: ${refusal.message}`)
    )
  )
})
