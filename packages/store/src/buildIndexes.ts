import { Effect, Schedule, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/**
 * SQL: the partitions that lack an index of their table. A migration created that index `ON ONLY` the table. `child` is
 * the partition's own index of the same definition, which is not yet attached. Recent months come first, because they are
 * read most.
 */
const missing = `
  WITH definitions AS (SELECT indexrelid, indrelid, indisvalid, substring(pg_get_indexdef(indexrelid) FROM ' (USING .*)$') AS definition FROM pg_index)
  SELECT p.indexrelid::regclass::text AS parent, t.inhrelid::regclass::text AS partition, p.definition, c.indexrelid::regclass::text AS child,
    c.indisvalid AS "isValid"
  FROM definitions p
  JOIN pg_class i ON i.oid = p.indexrelid AND i.relkind = 'I' AND i.relnamespace = current_schema()::regnamespace
  JOIN pg_inherits t ON t.inhparent = p.indrelid
  LEFT JOIN definitions c ON c.indrelid = t.inhrelid AND c.definition = p.definition
  WHERE NOT p.indisvalid
    AND NOT EXISTS (SELECT FROM pg_inherits a JOIN pg_index x ON x.indexrelid = a.inhrelid WHERE a.inhparent = p.indexrelid AND x.indrelid = t.inhrelid)
  ORDER BY t.inhrelid::regclass::text DESC`

const MissingIndexes = Schema.Array(
  Schema.Struct({
    parent: Schema.String,
    partition: Schema.String,
    definition: Schema.String,
    child: Schema.NullOr(Schema.String),
    isValid: Schema.NullOr(Schema.Boolean)
  })
)
const decode = Schema.decodeUnknownEffect(MissingIndexes)

/** Whether a partition lacks an index. */
export const lacksIndexes = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  return (yield* sql.unsafe(missing)).length > 0
})

/** Runs a statement on the connection of the builder. */
type Run = (text: string) => Effect.Effect<unknown, SqlError.SqlError>

/** Statements on the partition wait behind the attachment, so it waits half a second at most, and then tries again. */
const attach = (run: Run, parent: string, child: string) =>
  run("SET lock_timeout = '500ms'").pipe(
    Effect.andThen(run(`ALTER INDEX ${parent} ATTACH PARTITION ${child}`)),
    Effect.ensuring(Effect.ignore(run("RESET lock_timeout"))),
    Effect.retry({ while: ({ reason }) => reason._tag === "LockTimeoutError", schedule: Schedule.spaced("1 second") })
  )

/**
 * Builds the indexes that partitions lack, one after the other, while requests are written. Returns false, and builds
 * nothing, if another program builds them. This is no transaction: if it is interrupted, finished indexes stay, and the next program replaces an
 * invalid index and goes on.
 */
export const buildIndexes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const connection = yield* sql.reserve
  const run: Run = (text) => connection.executeUnprepared(text, [], undefined)
  // It must not wait for the lock: a build waits for all transactions, also for one waiting here.
  const locks = yield* connection.executeUnprepared("SELECT WHERE pg_try_advisory_lock(hashtext('seatrial.indexes'))", [], undefined)
  if (locks.length === 0) return false
  yield* Effect.addFinalizer(() => Effect.ignore(run("SELECT pg_advisory_unlock(hashtext('seatrial.indexes'))")))
  yield* run("SET statement_timeout = 0")
  yield* Effect.addFinalizer(() => Effect.ignore(run("RESET statement_timeout")))
  while (true) {
    const [next] = yield* Effect.orDie(decode(yield* run(missing)))
    if (next === undefined) return true
    const { child, definition, isValid, parent, partition } = next
    if (child === null) {
      yield* Effect.logInfo(`Building the index ${parent} of ${partition}; requests do not wait for it`)
      yield* run(`CREATE INDEX CONCURRENTLY ON ${partition} ${definition}`)
    } else if (isValid !== true) yield* run(`DROP INDEX CONCURRENTLY ${child}`)
    else yield* attach(run, parent, child)
  }
}).pipe(Effect.scoped, Effect.withSpan("Database.buildIndexes"))
