import { Effect, Option, Stream } from "effect"

interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly next_cursor: string | null
}

/** Where a page begins, and how many rows it has at most. */
export interface PageRequest {
  readonly cursor?: string
  readonly limit?: number
}

export interface PageSize {
  /** Rows that each request asks for, 1 to 200; by default the server's 50. */
  readonly pageSize?: number
}

/** Every row of a list, newest first. A page is fetched only once the one before it has been taken. */
export const everyPage = <A, E, R>(pageSize: number | undefined, fetch: (page: PageRequest) => Effect.Effect<Page<A>, E, R>): Stream.Stream<A, E, R> =>
  Stream.paginate(Option.none<string>(), (cursor) =>
    fetch({ ...(pageSize === undefined ? {} : { limit: pageSize }), ...(Option.isNone(cursor) ? {} : { cursor: cursor.value }) }).pipe(
      Effect.map(({ data, next_cursor }) => [data, next_cursor === null ? Option.none() : Option.some(Option.some(next_cursor))] as const)
    )
  )
