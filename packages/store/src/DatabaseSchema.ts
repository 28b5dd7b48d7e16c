import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { migrateSchema } from "./migrate.ts"
import { compareSchema, readSchema, schemaProblem } from "./schemaState.ts"

interface SchemaCheck {
  /** Checks whether the program can run on the schema of the database. Returns the problem, or null. */
  readonly check: Effect.Effect<string | null, SqlError.SqlError>
  /** The result of the last check. */
  readonly problem: () => string | null
}

/** Whether the program can run on the schema of its database. If not, the program is not ready. */
export const DatabaseSchema = Context.Reference<SchemaCheck>("seatrial/DatabaseSchema", {
  defaultValue: () => ({ check: Effect.succeed(null), problem: () => null })
})

/** Waits until the database has the schema that the program needs. Fails if the schema is not supported. */
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
  // Polls only before the program serves: no notification exists for the migration of a new installation.
  yield* Effect.repeat(isCurrent, { until: (isDone) => isDone, schedule: Schedule.spaced("1 second") })
})

/**
 * Checks the schema before the program serves, by migrating or by waiting for `seatrial migrate`, and provides later
 * checks.
 */
export const layerSchema = (migrates: boolean) =>
  Layer.effect(
    DatabaseSchema,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const state = compareSchema(yield* readSchema(sql))
      if (state._tag === "Unsupported") return yield* state.error
      // A program with few privileges cannot lock the table of migrations, so `migrate` runs only if it has work.
      if (state._tag === "Behind") yield* migrates ? migrateSchema : awaitSchema(sql)
      let problem: string | null = null
      const check = Effect.gen(function* () {
        const current = yield* schemaProblem(sql)
        if (current !== null && current !== problem) yield* Effect.logError(`This program is not ready: ${current}`)
        if (current === null && problem !== null) yield* Effect.logInfo("The schema of the database fits this program again; it is ready")
        problem = current
        return current
      })
      return { check, problem: () => problem }
    })
  )
