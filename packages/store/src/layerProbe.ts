import { Clock, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { storeMetrics } from "./metrics.ts"

/** Asks Postgres nothing every ten seconds and measures how long that takes: where all connections are in use, that shows. */
export const layerProbe = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const probe = Effect.gen(function* () {
      const startedAt = yield* Clock.currentTimeMillis
      const outcome = yield* sql`SELECT 1`.pipe(
        Effect.timeout("15 seconds"),
        Effect.as("done"),
        Effect.catchCause(() => Effect.succeed("failed"))
      )
      yield* storeMetrics.probeSeconds.update({ outcome }, ((yield* Clock.currentTimeMillis) - startedAt) / 1_000)
    })
    yield* Effect.forkScoped(Effect.repeat(Effect.withTracerEnabled(probe, false), Schedule.spaced("10 seconds")))
  })
)
