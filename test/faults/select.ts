import { type Context, Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"

/** Reads the rows of a statement. */
export type Select = <A>(rows: Schema.Codec<A, unknown>, statement: string) => Effect.Effect<A>

export const selectIn =
  (sql: Context.Context<SqlClient.SqlClient>): Select =>
  (rows, statement) =>
    Effect.gen(function* () {
      const client = yield* SqlClient.SqlClient
      return yield* Schema.decodeUnknownEffect(rows)(yield* client.unsafe(statement))
    }).pipe(Effect.provideContext(sql), Effect.orDie)
