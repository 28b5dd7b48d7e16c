import type { DeploymentId } from "@seatrial/domain"
import type { ReportedLoad, Run } from "@seatrial/store"
import { Effect, type Scope } from "effect"
import { curveOf } from "./decide/autoscale.ts"
import { isGood } from "./decide/fleet.ts"
import { operatorMetrics } from "./metrics.ts"
import { enginesOf } from "./observation/engines.ts"
import type { Observation } from "./observation/Observation.ts"
import type { RunStore } from "./RunStore.ts"

/** The metrics of models whose number of engines the autoscaler sets. */
export interface ScalingGauges extends RunStore {
  readonly note: (observation: Observation) => Effect.Effect<void>
  /** Updates the demand of models that a pass has noted: most loads require no pass. */
  readonly noteLoads: (loads: ReadonlyArray<ReportedLoad>) => Effect.Effect<void>
}

const states = ["desired", "granted", "ready"] as const

const remove = ({ model, orgSlug: organization }: Run) =>
  Effect.all(
    [
      operatorMetrics.modelDemand.remove({ organization, model }),
      operatorMetrics.engineCapacity.remove({ organization, model }),
      ...states.map((state) => operatorMetrics.modelEngines.remove({ organization, model, state }))
    ],
    { discard: true }
  )

/** Keeps the metrics until the scope closes, and removes the metrics of a model when its limits go. */
export const makeScalingGauges: Effect.Effect<ScalingGauges, never, Scope.Scope> = Effect.gen(function* () {
  const shown = new Map<DeploymentId, Run>()
  const forget = Effect.fnUntraced(function* (id: DeploymentId) {
    const run = shown.get(id)
    shown.delete(id)
    if (run !== undefined) yield* remove(run)
  })
  yield* Effect.addFinalizer(() => Effect.forEach([...shown.keys()], forget, { discard: true }))
  return {
    note: Effect.fnUntraced(function* (observation) {
      const { load, run } = observation
      const requests = load?.samples.at(-1)?.requests
      if (shown.get(run.id)?.model !== run.model || requests === undefined) yield* forget(run.id)
      if (requests === undefined) return
      shown.set(run.id, run)
      const labels = { organization: run.orgSlug, model: run.model }
      const engines = enginesOf(observation)
      yield* operatorMetrics.modelDemand.update(labels, requests)
      yield* operatorMetrics.engineCapacity.update(labels, curveOf(run)?.capacity ?? 0)
      yield* operatorMetrics.modelEngines.update({ ...labels, state: "desired" }, run.replicas ?? 1)
      yield* operatorMetrics.modelEngines.update({ ...labels, state: "granted" }, engines.filter(({ alone }) => alone.pod !== null).length)
      yield* operatorMetrics.modelEngines.update({ ...labels, state: "ready" }, engines.filter(isGood).length)
    }),
    noteLoads: Effect.fnUntraced(function* (loads) {
      for (const { requests, run } of loads) {
        const known = shown.get(run)
        if (known === undefined || requests === null) continue
        yield* operatorMetrics.modelDemand.update({ organization: known.orgSlug, model: known.model }, requests)
      }
    }),
    remembers: (id) => shown.has(id),
    forget
  }
})
