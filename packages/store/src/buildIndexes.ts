import { Data, Effect, Schedule, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/**
 * SQL: the partitions that lack an index of their table. A migration created that index `ON ONLY` the table. `child` is
 * the partition's own index of the same definition, which is not yet attached. Recent months come first, because they are
 * read most.
 */
const missing = `
  WITH definitions AS (SELECT indexrelid, indrelid, indisvalid, indisunique, substring(pg_get_indexdef(indexrelid) FROM ' (USING .*)$') AS definition FROM pg_index)
  SELECT p.indexrelid::regclass::text AS parent, t.inhrelid::regclass::text AS partition, p.definition, p.indisunique AS "isUnique",
    c.indexrelid::regclass::text AS child, c.indisvalid AS "isValid"
  FROM definitions p
  JOIN pg_class i ON i.oid = p.indexrelid AND i.relkind = 'I' AND i.relnamespace = current_schema()::regnamespace
  JOIN pg_inherits t ON t.inhparent = p.indrelid
  LEFT JOIN definitions c ON c.indrelid = t.inhrelid AND c.definition = p.definition AND c.indisunique = p.indisunique
  WHERE NOT p.indisvalid
    AND NOT EXISTS (SELECT FROM pg_inherits a JOIN pg_index x ON x.indexrelid = a.inhrelid WHERE a.inhparent = p.indexrelid AND x.indrelid = t.inhrelid)
  ORDER BY t.inhrelid::regclass::text DESC`

const MissingIndexes = Schema.Array(
  Schema.Struct({
    parent: Schema.String,
    partition: Schema.String,
    definition: Schema.String,
    isUnique: Schema.Boolean,
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

/** Postgres could not build an index, for example because values of a unique index repeat. */
class IndexBuildError extends Data.TaggedError("IndexBuildError")<{ readonly message: string; readonly cause: SqlError.SqlError }> {}

/** Builds or attaches one index. Returns true if none is missing. */
const buildNext = Effect.fnUntraced(function* (run: Run) {
  const [next] = yield* Effect.orDie(decode(yield* run(missing)))
  if (next === undefined) return true
  const { child, definition, isUnique, isValid, parent, partition } = next
  yield* Effect.gen(function* () {
    if (child !== null && isValid === true) return yield* attach(run, parent, child)
    if (child !== null) yield* run(`DROP INDEX CONCURRENTLY ${child}`)
    yield* Effect.logInfo(`Building the index ${parent} of ${partition}; requests do not wait for it`)
    yield* run(`CREATE${isUnique ? " UNIQUE" : ""} INDEX CONCURRENTLY ON ${partition} ${definition}`)
  }).pipe(
    Effect.mapError((cause) =>
      cause.reason._tag === "ConnectionError" ? cause : new IndexBuildError({ message: `The index ${parent} of ${partition} could not be built`, cause })
    )
  )
  return false
})

/**
 * A session that locks the partition while a build waits for it ends the build by a deadlock. Each attempt reads which
 * index is missing, because the one before may have left an invalid index.
 */
const afterDeadlock = {
  times: 5,
  schedule: Schedule.exponential("50 millis"),
  while: (error: IndexBuildError | SqlError.SqlError) => error._tag === "IndexBuildError" && error.cause.reason._tag === "DeadlockError"
}

/**
 * Builds the indexes that partitions lack, one after the other, while requests are written. Returns false, and builds
 * nothing, if another program builds them. This is no transaction: if it is interrupted, finished indexes stay, and the
 * next program replaces an invalid index and goes on.
 */
export const buildIndexes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const connection = yield* sql.reserve
  const run: Run = (text) => connection.executeUnprepared(text, [], undefined)
  // It must not wait for the lock: a build waits for all transactions, also for one waiting here.
  const locks = yield* connection.executeUnprepared("SELECT WHERE pg_try_advisory_lock(hashtext('seatrial.indexes'))", [], undefined)
  if (locks.length === 0) return false
  yield* Effect.addFinalizer(() => Effect.ignore(run("SELECT pg_advisory_unlock(hashtext('seatrial.indexes'))")))
  for (const setting of ["statement_timeout", "lock_timeout"]) yield* run(`SET ${setting} = 0`)
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.andThen(run("RESET statement_timeout"), run("RESET lock_timeout"))))
  return yield* Effect.repeat(Effect.retry(buildNext(run), afterDeadlock), { until: (isBuilt) => isBuilt })
}).pipe(Effect.scoped, Effect.withSpan("Database.buildIndexes"))

/** Waits for another program that builds the indexes, because that one may end early: its connection to Postgres can outlive it. */
export const completeIndexes = Effect.repeat(buildIndexes, { until: (isBuilt) => isBuilt, schedule: Schedule.spaced("1 second") })
