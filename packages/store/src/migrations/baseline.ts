import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { knownMigrations } from "./knownMigrations.ts"

/** The last migration whose result `baseline.sql` contains. */
const baselineId = 58

const file = new URL("./baseline.sql", import.meta.url)

/** A statement with its semicolon. Comments and function bodies may contain semicolons. */
const statement = /(?:--.*|\$\$[\s\S]*?\$\$|[^;])+;/gu

/**
 * Creates the schema in an empty database. It records the migrations that the baseline contains, as if they had run, so
 * that the database equals an upgraded one, also for programs of older versions.
 */
export const createBaseline = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const schema = yield* Effect.promise(() => readFile(file, "utf8"))
  for (const [text] of schema.matchAll(statement)) yield* sql.unsafe(text)
  const contained = knownMigrations.filter(({ id }) => id <= baselineId)
  const [ids, names] = [contained.map(({ id }) => id), contained.map(({ name }) => name)]
  yield* sql`INSERT INTO migrations (migration_id, name) SELECT * FROM unnest(${ids}::integer[], ${names}::text[])`
  return [baselineId, "baseline"] as const
}).pipe(Effect.mapError((cause) => new Migrator.MigrationError({ kind: "Failed", message: `Migration "${baselineId}_baseline" failed`, cause })))
