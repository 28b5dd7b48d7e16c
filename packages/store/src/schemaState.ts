import { Data, Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { knownMigrations as known, oldestMigrations, type RecordedMigration } from "./migrations/knownMigrations.ts"

/** The program cannot run on the schema of the database. */
export class DatabaseSchemaError extends Data.TaggedError("DatabaseSchemaError")<{ readonly message: string }> {}

/** The recorded state of a database's schema. `minimum` is the lowest schema that a program must know. */
interface DatabaseState {
  readonly applied: ReadonlyArray<RecordedMigration>
  readonly minimum: number
}

/** Whether the schema of a database fits this program. */
export type SchemaState =
  | { readonly _tag: "Current" }
  | { readonly _tag: "Behind"; readonly message: string }
  | { readonly _tag: "Unsupported"; readonly error: DatabaseSchemaError }

const numbered = (id: number) => String(id).padStart(4, "0")

const keysOf = (migrations: ReadonlyArray<RecordedMigration>) => migrations.map(({ id, name }) => `${numbered(id)}_${name}`).join(", ")

/** The highest migration that this program knows. */
export const knownSchema = Math.max(...known.map(({ id }) => id))

const unsupported = (message: string): SchemaState => ({ _tag: "Unsupported", error: new DatabaseSchemaError({ message }) })

/**
 * Compares the schema with this program. Newer schemas fit unless a migration has raised the minimum, because
 * migrations only add.
 */
export const compareSchema = ({ applied, minimum }: DatabaseState): SchemaState => {
  if (knownSchema < minimum) {
    return unsupported(
      `This version supports the database schema up to ${numbered(knownSchema)}, but the database requires a program that supports ${numbered(minimum)}. Start a later version.`
    )
  }
  if (applied.length === 0) return { _tag: "Behind", message: "The database is empty. Run `seatrial migrate`." }
  const names = new Map(applied.map(({ id, name }) => [id, name]))
  const other = known.find(({ id, name }) => names.has(id) && names.get(id) !== name)
  if (other !== undefined) {
    return unsupported(
      `The database has a migration ${numbered(other.id)} named ${names.get(other.id)}, and this version has one named ${other.name}. Start the version that made the database.`
    )
  }
  const isMissing = ({ id }: RecordedMigration) => !names.has(id)
  const older = oldestMigrations.filter(isMissing)
  if (older.length > 0) {
    return unsupported(
      `The database is older than version 0.1.0: it lacks the migrations ${keysOf(older)}. Run \`seatrial migrate\` of version 0.1.0, and then that of this version.`
    )
  }
  const missing = known.filter(isMissing)
  return missing.length === 0
    ? { _tag: "Current" }
    : {
        _tag: "Behind",
        message: `The database lacks migrations that this version needs: ${keysOf(missing)}. Run \`seatrial migrate\`.`
      }
}

const Tables = Schema.Tuple([Schema.Struct({ migrations: Schema.Boolean, requirements: Schema.Boolean })])
const Applied = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String }))
const Minimum = Schema.Array(Schema.Struct({ minimum: Schema.Int }))
const Brief = Schema.Tuple([Schema.Struct({ latest: Schema.Int, minimum: Schema.Int })])

/** Reads the state of the schema, also of an empty database. */
export const readSchema = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const tables = yield* sql`SELECT to_regclass('migrations') IS NOT NULL AS migrations, to_regclass('schema_requirements') IS NOT NULL AS requirements`
  const [table] = yield* Effect.orDie(Schema.decodeUnknownEffect(Tables)(tables))
  const applied = table.migrations ? yield* sql`SELECT migration_id AS id, name FROM migrations ORDER BY 1` : []
  const minimum = table.requirements ? yield* sql`SELECT minimum_program_schema AS minimum FROM schema_requirements` : []
  return {
    applied: yield* Effect.orDie(Schema.decodeUnknownEffect(Applied)(applied)),
    minimum: (yield* Effect.orDie(Schema.decodeUnknownEffect(Minimum)(minimum)))[0]?.minimum ?? 0
  }
})

/**
 * Why this program cannot run on the current schema; null if it can. One statement, for a program that is already
 * running.
 */
export const schemaProblem = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const rows = yield* sql`
    SELECT coalesce((SELECT max(migration_id) FROM migrations), 0) AS latest, coalesce((SELECT minimum_program_schema FROM schema_requirements), 0) AS minimum`
  const [{ latest, minimum }] = yield* Effect.orDie(Schema.decodeUnknownEffect(Brief)(rows))
  const applied = latest < knownSchema ? known.filter(({ id }) => id <= latest) : known
  const state = compareSchema({ applied, minimum })
  return state._tag === "Current" ? null : state._tag === "Behind" ? state.message : state.error.message
})
