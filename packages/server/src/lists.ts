import { Caller, defaultLimit } from "@seatrial/api"
import type { JsonPage, Page, PageRequest, Position } from "@seatrial/store"
import { Effect, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { Cursors, type ListIdentity } from "./Cursors.ts"
import { invalidCursor } from "./publicErrors.ts"

interface PageParameters {
  readonly cursor?: string
  readonly limit?: number
}

/** The page of a filter that no record can match. */
export const emptyPage: Page<never> = { items: [], next: null }
export const emptyJsonPage: JsonPage = { data: "[]", next: null }

const json = { contentType: "application/json" } as const

/** A response with JSON that is already encoded. */
export const jsonText = (text: string): HttpServerResponse.HttpServerResponse => HttpServerResponse.text(text, json)

const makePaging = Effect.gen(function* () {
  const cursors = yield* Cursors
  return {
    begin: Effect.fnUntraced(function* (operation: string, { cursor, limit, ...filters }: PageParameters & ListIdentity["filters"]) {
      const { orgId } = yield* Caller
      const list = { orgId, operation, filters }
      const after = cursor === undefined ? Option.none() : cursors.decode(list, cursor)
      if (cursor !== undefined && Option.isNone(after)) return yield* invalidCursor
      return { list, page: { limit: limit ?? defaultLimit, after: Option.getOrNull(after) } }
    }),
    cursorOf: (list: ListIdentity, next: Position | null) => (next === null ? null : cursors.encode(list, next))
  }
})

/**
 * Returns a function that responds with one page in a list envelope. Rows are not encoded by their schema, because that
 * would cost more than the query.
 */
export const pageResponses = Effect.gen(function* () {
  const { begin, cursorOf } = yield* makePaging
  return Effect.fnUntraced(function* <A>(
    operation: string,
    parameters: PageParameters & ListIdentity["filters"],
    read: (orgId: ListIdentity["orgId"], page: PageRequest) => Effect.Effect<Page<A>>,
    render: (row: A) => unknown
  ) {
    const { list, page } = yield* begin(operation, parameters)
    const { items, next } = yield* read(list.orgId, page)
    return HttpServerResponse.jsonUnsafe({ object: "list", data: items.map(render), next_cursor: cursorOf(list, next) })
  })
})

/** Like `pageResponses`, for a page that is already JSON text. */
export const jsonPageResponses = Effect.gen(function* () {
  const { begin, cursorOf } = yield* makePaging
  return Effect.fnUntraced(function* <E>(
    operation: string,
    parameters: PageParameters & ListIdentity["filters"],
    read: (orgId: ListIdentity["orgId"], page: PageRequest) => Effect.Effect<JsonPage, E>
  ) {
    const { list, page } = yield* begin(operation, parameters)
    const { data, next } = yield* read(list.orgId, page)
    return jsonText(`{"object":"list","data":${data},"next_cursor":${JSON.stringify(cursorOf(list, next))}}`)
  })
})
