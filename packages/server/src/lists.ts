import { Caller, defaultLimit } from "@seatrial/api"
import type { Page, PageRequest } from "@seatrial/store"
import { Effect, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { Cursors, type ListIdentity } from "./Cursors.ts"
import { invalidCursor } from "./publicErrors.ts"

interface PageParameters {
  readonly cursor?: string
  readonly limit?: number
}

/** No page at all: for filters that no record can have. */
export const emptyPage: Page<never> = { items: [], next: null }

/**
 * Gives what answers with one page as a list envelope. The rows come from Postgres in the shape of the wire and go out as they are: encoding each by its schema
 * again would cost more than the query.
 */
export const pageAnswers = Effect.gen(function* () {
  const cursors = yield* Cursors

  return Effect.fnUntraced(function* <A>(
    operation: string,
    { cursor, limit, ...filters }: PageParameters & ListIdentity["filters"],
    read: (orgId: ListIdentity["orgId"], page: PageRequest) => Effect.Effect<Page<A>>,
    render: (row: A) => unknown
  ) {
    const { orgId } = yield* Caller
    const list = { orgId, operation, filters }
    const after = cursor === undefined ? Option.none() : cursors.decode(list, cursor)
    if (cursor !== undefined && Option.isNone(after)) return yield* invalidCursor
    const { items, next } = yield* read(orgId, { limit: limit ?? defaultLimit, after: Option.getOrNull(after) })
    return HttpServerResponse.jsonUnsafe({ object: "list", data: items.map(render), next_cursor: next === null ? null : cursors.encode(list, next) })
  })
})
