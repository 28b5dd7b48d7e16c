import { Effect, Option, Stream } from "effect"

interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly next_cursor: string | null
}

/** The start of a page and its maximum number of rows. */
export interface PageRequest {
  readonly cursor?: string
  readonly limit?: number
}

export interface PageSize {
  /** Rows per request, 1 to 200; by default the server's 50. */
  readonly pageSize?: number
}

/** All rows of a list, newest first. A page is fetched after the previous one has been consumed. */
export const everyPage = <A, E, R>(pageSize: number | undefined, fetch: (page: PageRequest) => Effect.Effect<Page<A>, E, R>): Stream.Stream<A, E, R> =>
  Stream.paginate(Option.none<string>(), (cursor) =>
    fetch({ ...(pageSize === undefined ? {} : { limit: pageSize }), ...(Option.isNone(cursor) ? {} : { cursor: cursor.value }) }).pipe(
      Effect.map(({ data, next_cursor }) => [data, next_cursor === null ? Option.none() : Option.some(Option.some(next_cursor))] as const)
    )
  )
