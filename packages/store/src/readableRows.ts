import { Effect, Predicate, Result, Schema } from "effect"

/** The rows of a schema, as far as they can be read: one that cannot is left out and told of, so that it hides no other. `what` and its revision name such a row in the log. */
export const readableRows = <A, I>(schema: Schema.Codec<A, I>, what: string) => {
  const decode = Schema.decodeUnknownResult(schema)
  return Effect.fnUntraced(function* (rows: ReadonlyArray<unknown>) {
    const read: Array<A> = []
    for (const row of rows) {
      const decoded = decode(row)
      if (Result.isSuccess(decoded)) read.push(decoded.success)
      else {
        const revision = Predicate.hasProperty(row, "revisionId") ? String(row.revisionId) : "no revision"
        yield* Effect.logError(`${what} (${revision}) is left out: its row cannot be read: ${decoded.failure.message.replaceAll(/\s+/g, " ")}`)
      }
    }
    return read
  })
}
