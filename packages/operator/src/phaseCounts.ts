import { type DeploymentId, Phase } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { operatorMetrics } from "./metrics.ts"
import type { RunStore } from "./RunStore.ts"

/**
 * The number of runs in each phase, and the number of models without the engine that should serve them, as the leader
 * last observed them.
 */
export interface PhaseCounts extends RunStore {
  /** Sets the phase of the run; null removes it. `isMissed`: whether its model should serve and no engine answers. */
  readonly note: (id: DeploymentId, phase: Phase | null, isMissed?: boolean) => Effect.Effect<void>
  /** The last phase that was set for the run; undefined if there is none. */
  readonly of: (id: DeploymentId) => Phase | undefined
}

/** Keeps the metrics until the scope closes. */
export const makePhaseCounts: Effect.Effect<PhaseCounts, never, Scope.Scope> = Effect.gen(function* () {
  const phases = new Map<DeploymentId, Phase>()
  const missed = new Set<DeploymentId>()
  const updateMissed = Effect.suspend(() => operatorMetrics.modelsUnavailable.update({}, missed.size))
  yield* updateMissed
  yield* Effect.addFinalizer(() => operatorMetrics.modelsUnavailable.remove({}))
  yield* Effect.forEach(Phase.literals, (phase) => operatorMetrics.deployments.update({ phase }, 0), { discard: true })
  yield* Effect.addFinalizer(() => Effect.forEach(Phase.literals, (phase) => operatorMetrics.deployments.remove({ phase }), { discard: true }))

  const note: PhaseCounts["note"] = Effect.fnUntraced(function* (id, phase, isMissed = false) {
    if (isMissed !== missed.has(id)) {
      if (isMissed) missed.add(id)
      else missed.delete(id)
      yield* updateMissed
    }
    const before = phases.get(id) ?? null
    if (before === phase) return
    if (phase === null) phases.delete(id)
    else phases.set(id, phase)
    if (before !== null) yield* operatorMetrics.deployments.modify({ phase: before }, -1)
    if (phase !== null) yield* operatorMetrics.deployments.modify({ phase }, 1)
  })
  return { of: (id) => phases.get(id), note, remembers: (id) => phases.has(id) || missed.has(id), forget: (id) => note(id, null) }
})
