import { type DeploymentId, type Phase, workingPhases } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { operatorMetrics } from "./metrics.ts"

/** How many runs are in each phase, as the leader saw them last. */
export interface PhaseCounts {
  /** The run is in that phase; null: it concerns nobody any more. */
  readonly note: (id: DeploymentId, phase: Phase | null) => Effect.Effect<void>
}

/** Shows the counts in the metrics for as long as the scope. */
export const makePhaseCounts: Effect.Effect<PhaseCounts, never, Scope.Scope> = Effect.gen(function* () {
  const phases = new Map<DeploymentId, Phase>()
  const all: ReadonlyArray<Phase> = [...workingPhases, "activated", "failed", "cancelled"]
  yield* Effect.forEach(all, (phase) => operatorMetrics.deployments.update({ phase }, 0), { discard: true })
  yield* Effect.addFinalizer(() => Effect.forEach(all, (phase) => operatorMetrics.deployments.remove({ phase }), { discard: true }))

  return {
    note: Effect.fnUntraced(function* (id, phase) {
      const before = phases.get(id) ?? null
      if (before === phase) return
      if (phase === null) phases.delete(id)
      else phases.set(id, phase)
      if (before !== null) yield* operatorMetrics.deployments.modify({ phase: before }, -1)
      if (phase !== null) yield* operatorMetrics.deployments.modify({ phase }, 1)
    })
  }
})
