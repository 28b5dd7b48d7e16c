import type { DeploymentId } from "@seatrial/domain"
import { makeOutageLog, type Runs } from "@seatrial/store"
import { Clock, Effect, Schedule } from "effect"
import type { ModelLoads } from "./gather/ModelLoads.ts"
import type { ScalingGauges } from "./scalingGauges.ts"

const interval = "1 second"

interface LoadContext {
  readonly modelLoads: Runs["Service"]["modelLoads"]
  readonly loads: ModelLoads
  readonly gauges: Pick<ScalingGauges, "noteLoads">
  readonly enqueueRun: (id: DeploymentId) => Effect.Effect<void>
}

/**
 * Reads the loads of all models whose number of engines the autoscaler sets, and requests a pass over each model whose
 * number must change. Never ends by itself.
 */
export const followLoads = ({ enqueueRun, gauges, loads, modelLoads }: LoadContext) =>
  Effect.gen(function* () {
    const reported = yield* modelLoads
    yield* gauges.noteLoads(reported)
    yield* Effect.forEach(loads.add(reported, yield* Clock.currentTimeMillis), enqueueRun, { discard: true })
  }).pipe(Effect.catchCause(makeOutageLog("Could not read the load of the models")), Effect.repeat(Schedule.spaced(interval)))
