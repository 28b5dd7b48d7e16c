import type { SuspicionsQuery } from "@seatrial/api"
import { Suspicions } from "@seatrial/store"
import { Effect } from "effect"
import { pageResponses } from "./lists.ts"

/** Lists the engines whose probes differed from their trial. */
export const suspicionsOperation = Effect.gen(function* () {
  const suspicions = yield* Suspicions
  const respondWithPage = yield* pageResponses
  return ({ query }: { readonly query: SuspicionsQuery }) => respondWithPage("listSuspicions", query, suspicions.list, (row) => row)
})
