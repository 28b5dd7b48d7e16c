import { Effect, Predicate, Result, Schema } from "effect"

/**
 * Decodes rows and omits those that cannot be decoded, with an error in the log. `what` and the revision identify such
 * a row in the log.
 */
export const readableRows = <A, I>(schema: Schema.Codec<A, I>, what: string) => {
  const decode = Schema.decodeUnknownResult(schema)
  return Effect.fnUntraced(function* (rows: ReadonlyArray<unknown>) {
    const read: Array<A> = []
    for (const row of rows) {
      const decoded = decode(row)
      if (Result.isSuccess(decoded)) read.push(decoded.success)
      else {
        const revision = Predicate.hasProperty(row, "revisionId") ? String(row.revisionId) : "no revision"
        yield* Effect.logError(`${what} (${revision}) is omitted: its row cannot be decoded: ${decoded.failure.message.replaceAll(/\s+/g, " ")}`)
      }
    }
    return read
  })
}
