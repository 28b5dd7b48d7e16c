import { Clock, Context, DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** Makes the partitions of requests and receipts for the months from one time to another, Unix milliseconds, where they are missing. */
export const ensurePartitions = Effect.fn("ensurePartitions")(function* (sql: SqlClient.SqlClient, from: number, to: number) {
  yield* sql`SELECT ensure_request_partitions(${new Date(from)}, ${new Date(to)})`
})

/** Keeps the partitions of the next two months made ahead: at the start, and every hour while the layer lives. */
export class Partitions extends Context.Service<Partitions, { readonly ensureAhead: Effect.Effect<void> }>()("seatrial/Partitions") {
  static readonly layerSql = Layer.effect(
    Partitions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ahead = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* ensurePartitions(sql, now, DateTime.toEpochMillis(DateTime.add(DateTime.makeUnsafe(now), { months: 2 })))
      })
      yield* Effect.orDie(ahead)
      // An hour's failure is made good by the next: two months are left.
      yield* ahead.pipe(
        Effect.catchCause((cause) => Effect.logWarning("Partitions could not be made ahead", cause)),
        Effect.delay("1 hour"),
        Effect.forever,
        Effect.forkScoped
      )
      return Partitions.of({ ensureAhead: Effect.orDie(ahead) })
    })
  )
}
