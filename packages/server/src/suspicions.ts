import type { SuspicionsQuery } from "@seatrial/api"
import { SuspicionId } from "@seatrial/domain"
import { Suspicions } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { jsonPageResponses, pageResponses } from "./lists.ts"
import { notFound } from "./publicErrors.ts"

const isSuspicionId = Schema.is(SuspicionId)

/** Lists the engines whose probes differed from their trial, and the requests that one of them answered since. */
export const suspicionOperations = Effect.gen(function* () {
  const suspicions = yield* Suspicions
  const respondWithPage = yield* pageResponses
  const respondWithJson = yield* jsonPageResponses
  return {
    list: ({ query }: { readonly query: SuspicionsQuery }) => respondWithPage("listSuspicions", query, suspicions.list, (row) => row),
    requests: Effect.fnUntraced(function* ({ params: { id }, query }: { readonly params: { readonly id: string }; readonly query: SuspicionsQuery }) {
      if (!isSuspicionId(id)) return yield* notFound
      return yield* respondWithJson("listSuspicionRequests", { ...query, id }, (orgId, page) =>
        Effect.flatMap(suspicions.requestsJson(orgId, id, page), (found) => (Option.isNone(found) ? notFound : Effect.succeed(found.value)))
      )
    })
  }
})
