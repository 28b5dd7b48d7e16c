import { Caller, type OrgModelsQuery } from "@seatrial/api"
import { ModelId } from "@seatrial/domain"
import { OrgModels } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { pageAnswers } from "./lists.ts"
import { notFound } from "./publicErrors.ts"

const isModelId = Schema.is(ModelId)

/** The reading operations on the organisation's models. */
export const orgModelReads = Effect.gen(function* () {
  const models = yield* OrgModels
  const answerPage = yield* pageAnswers

  return {
    list: ({ query }: { readonly query: OrgModelsQuery }) => {
      const { q, ...open } = query
      const asked = q === "" ? open : query
      const { cursor: _, limit: __, ...filters } = asked
      return answerPage(
        "listOrgModels",
        asked,
        (orgId, page) => models.list(orgId, { ...filters, ...page }),
        (row) => row
      )
    },
    get: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
      const { orgId } = yield* Caller
      const found = isModelId(params.id) ? yield* models.find(orgId, params.id) : Option.none()
      if (Option.isNone(found)) return yield* notFound
      return HttpServerResponse.jsonUnsafe(found.value)
    })
  }
})
