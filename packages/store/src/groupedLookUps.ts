import { Effect, Exit, Option, Request, RequestResolver } from "effect"
import { SqlError, StatementTimeoutError } from "effect/sql/SqlError"
import type { FoundRow, RecordKey } from "./requests/statements.ts"

interface LookUp<Row> extends Request.Request<Option.Option<Row>, SqlError>, RecordKey {}

/** Keys of one statement. */
const most = 128

/** A statement outlives those who wait for it, so it has a limit of its own: Postgres may be behind a network that says nothing any more. */
const limit = "10 seconds"
const overdue = Effect.fail(
  new SqlError({
    reason: new StatementTimeoutError({ cause: new Error("no answer"), message: `Postgres did not answer within ${limit}.`, operation: "query" })
  })
)

/**
 * Look-ups by id that are asked for in the same turn of the event loop become one statement: with many callers at once this is most of what a look-up costs. Nobody waits for a
 * timer. Each caller is given what its own key found; a fault of the statement is told to each, and who goes away takes nothing from the others.
 */
export const groupedLookUps = <Row extends FoundRow>(find: (keys: ReadonlyArray<RecordKey>) => Effect.Effect<ReadonlyArray<Row>, SqlError>) => {
  const LookUp = Request.of<LookUp<Row>>()
  const resolver = RequestResolver.make<LookUp<Row>>((entries) =>
    Effect.map(Effect.timeoutOrElse(find(entries.map(({ request }) => request)), { duration: limit, orElse: () => overdue }), (rows) => {
      for (const row of rows) entries[row.key]?.completeUnsafe(Exit.succeed(Option.some(row)))
      for (const entry of entries) entry.completeUnsafe(Exit.succeed(Option.none()))
    })
  ).pipe(RequestResolver.batchN(most))
  return (key: RecordKey): Effect.Effect<Option.Option<Row>, SqlError> => Effect.request(LookUp(key), resolver)
}
