import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { migrate } from "./migrate.ts"
import { compareSchema, readSchema, schemaProblem } from "./schemaState.ts"

interface SchemaCheck {
  /** Asks the database whether the program can serve on its schema: why not, or null. */
  readonly check: Effect.Effect<string | null, SqlError.SqlError>
  /** The result of the last check. */
  readonly problem: () => string | null
}

/** Whether the program can serve on the schema of its database. Programs are not ready if it cannot. */
export const DatabaseSchema = Context.Reference<SchemaCheck>("seatrial/DatabaseSchema", {
  defaultValue: () => ({ check: Effect.succeed(null), problem: () => null })
})

/** Waits until the database has the schema that the program needs; fails if it never can. */
const awaitSchema = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  let logged = ""
  const isCurrent = Effect.gen(function* () {
    const state = compareSchema(yield* readSchema(sql))
    if (state._tag === "Unsupported") return yield* state.error
    if (state._tag === "Behind" && state.message !== logged) {
      logged = state.message
      yield* Effect.logWarning(`Waiting for the database: ${state.message}`)
    }
    return state._tag === "Current"
  })
  // Only before the program serves: nothing notifies of a migration that the first program of an installation waits for.
  yield* Effect.repeat(isCurrent, { until: (current) => current, schedule: Schedule.spaced("1 second") })
})

/** Makes sure that the schema fits before the program serves, by migrating or by waiting for `seatrial migrate`, and lets the program check it later. */
export const layerSchema = (migrates: boolean) =>
  Layer.effect(
    DatabaseSchema,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const state = compareSchema(yield* readSchema(sql))
      if (state._tag === "Unsupported") return yield* state.error
      // A program with few rights cannot even lock the table of migrations: it does nothing if there is nothing to do.
      if (state._tag === "Behind") yield* migrates ? migrate : awaitSchema(sql)
      let problem: string | null = null
      const check = Effect.gen(function* () {
        const found = yield* schemaProblem(sql)
        if (found !== null && found !== problem) yield* Effect.logError(`This program is not ready: ${found}`)
        if (found === null && problem !== null) yield* Effect.logInfo("The schema of the database fits this program again")
        problem = found
        return found
      })
      return { check, problem: () => problem }
    })
  )
