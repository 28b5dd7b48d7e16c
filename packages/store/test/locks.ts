import { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Fiber } from "effect"
import { soon } from "./stage.ts"

/** Runs an effect in a transaction that stays open until `release`. */
export const hold = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>, commit: boolean) {
  const sql = yield* PgClient.PgClient
  const held = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const fiber = yield* work.pipe(
    Effect.andThen(Deferred.succeed(held, undefined)),
    Effect.andThen(Deferred.await(release)),
    Effect.andThen(commit ? Effect.void : Effect.fail("roll back")),
    sql.withTransaction,
    Effect.exit,
    Effect.forkChild
  )
  yield* Deferred.await(held)
  return Effect.andThen(Deferred.succeed(release, undefined), Fiber.join(fiber))
})

/** Waits until this number of statements of the database wait for a lock. */
export const waiting = Effect.fnUntraced(function* (count: number) {
  const sql = yield* PgClient.PgClient
  yield* soon(Effect.map(sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, (rows) => rows.length >= count))
})
