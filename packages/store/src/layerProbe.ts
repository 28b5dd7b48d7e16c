import { Clock, Effect, Layer, Schedule } from "effect"
import { DatabaseSchema } from "./DatabaseSchema.ts"
import { storeMetrics } from "./metrics.ts"

/**
 * Checks every ten seconds whether the schema of the database still fits the program, and measures the time to an
 * answer, which shows if all connections are in use. The program is not ready while the schema does not fit.
 */
export const layerProbe = Layer.effectDiscard(
  Effect.gen(function* () {
    const { check } = yield* DatabaseSchema
    const probe = Effect.gen(function* () {
      const startedAt = yield* Clock.currentTimeMillis
      const outcome = yield* check.pipe(
        Effect.timeout("15 seconds"),
        Effect.as("done"),
        Effect.catchCause(() => Effect.succeed("failed"))
      )
      yield* storeMetrics.probeSeconds.update({ outcome }, ((yield* Clock.currentTimeMillis) - startedAt) / 1_000)
    })
    yield* Effect.forkScoped(Effect.repeat(Effect.withTracerEnabled(probe, false), Schedule.spaced("10 seconds")))
  })
)
