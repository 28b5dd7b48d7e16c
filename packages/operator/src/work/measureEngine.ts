import { fitErrorOf, kvCapacityRow, kvLayoutOf } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { Effect } from "effect"
import { operatorMetrics } from "../metrics.ts"
import { engineContainer } from "../resources/objectNames.ts"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Reads the engine's own figures from its metrics and its log, and records them. */
export const measureEngine = Effect.fn("measureEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const kube = yield* KubeClient
  const { client } = yield* subjectOf(trial, "30 seconds")
  const metrics = yield* Effect.mapError(client.get("/metrics"), unavailable)
  if (metrics.status !== 200) return yield* new WorkUnavailable({ message: `The engine's metrics answered with status ${metrics.status}.` })
  // Reads the log from its beginning, which has the figures of the start. The checks may have added thousands of lines
  // since: SGLang logs each prompt.
  const log = yield* Effect.mapError(kube.podLog(trial.pod.name, trial.namespace, { container: engineContainer }), () =>
    unavailable({ message: "The engine's log could not be read." })
  )
  const figures = trial.engine.measured({ metrics: metrics.text, log })
  const { estimate, facts, settings } = trial.revision
  const layout = kvLayoutOf(figures, { config: facts.config, wire: trial.engine.wire, fit: estimate, sequenceBytes: estimate.components?.sequence })
  const error = fitErrorOf(estimate, figures)
  if (error !== null) yield* operatorMetrics.fitError.update({ host_class: settings.host_class, inside: String(error.inside) }, Math.abs(error.error))
  yield* persist(
    runs.recordMeasured(
      trial.run.id,
      trial.run.orgId,
      layout === null ? figures : { ...figures, kv_layout: layout },
      kvCapacityRow(figures, settings.max_context, trial.podClass.hostClass.simulated)
    )
  )
})
