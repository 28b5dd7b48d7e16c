import { Effect, Exit, Option, Request, RequestResolver } from "effect"
import { SqlError, StatementTimeoutError } from "effect/sql/SqlError"
import type { FoundRow, RecordKey } from "./requests/statements.ts"

interface LookUp<Row> extends Request.Request<Option.Option<Row>, SqlError>, RecordKey {}

/** Maximum number of keys in one statement. */
const maxKeys = 128

/** Timeout of a statement. A statement outlives its callers, and a broken network may never report an error. */
const timeout = "10 seconds"
const overdue = Effect.fail(
  new SqlError({
    reason: new StatementTimeoutError({ cause: new Error("timeout"), message: `Postgres did not answer within ${timeout}.`, operation: "query" })
  })
)

/**
 * Combines lookups by ID that start in the same turn of the event loop into one statement, which saves most of their
 * cost under load. There is no delay. Each caller gets the result of its key; an error of the statement goes to all
 * callers, and a caller that leaves does not affect the others.
 */
export const groupedLookUps = <Row extends FoundRow>(find: (keys: ReadonlyArray<RecordKey>) => Effect.Effect<ReadonlyArray<Row>, SqlError>) => {
  const LookUp = Request.of<LookUp<Row>>()
  const resolver = RequestResolver.make<LookUp<Row>>((entries) =>
    Effect.map(Effect.timeoutOrElse(find(entries.map(({ request }) => request)), { duration: timeout, orElse: () => overdue }), (rows) => {
      for (const row of rows) entries[row.key]?.completeUnsafe(Exit.succeed(Option.some(row)))
      for (const entry of entries) entry.completeUnsafe(Exit.succeed(Option.none()))
    })
  ).pipe(RequestResolver.batchN(maxKeys))
  return (key: RecordKey): Effect.Effect<Option.Option<Row>, SqlError> => Effect.request(LookUp(key), resolver)
}
