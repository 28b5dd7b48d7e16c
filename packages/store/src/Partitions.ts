import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** Creates the missing partitions of requests and receipts for the months between two times, Unix milliseconds. */
export const ensurePartitions = Effect.fn("ensurePartitions")(function* (sql: SqlClient.SqlClient, from: number, to: number) {
  yield* sql`SELECT ensure_request_partitions(${new Date(from)}, ${new Date(to)})`
})

/**
 * Creates the partitions of the current and the next two months, by the database's clock: at the start, and then every
 * hour.
 */
export class Partitions extends Context.Service<Partitions, { readonly ensureAhead: Effect.Effect<void> }>()("seatrial/Partitions") {
  static readonly layerSql = Layer.effect(
    Partitions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ahead = Effect.asVoid(sql`SELECT ensure_request_partitions(now(), now() + interval '2 months')`)
      yield* Effect.orDie(ahead)
      // A failure is repeated after an hour: partitions for two more months exist.
      yield* ahead.pipe(
        Effect.catchCause((cause) => Effect.logWarning("Could not create partitions ahead", cause)),
        Effect.delay("1 hour"),
        Effect.forever,
        Effect.forkScoped
      )
      return Partitions.of({ ensureAhead: Effect.orDie(ahead) })
    })
  )
}
