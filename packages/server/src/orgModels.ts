import { Caller, type OrgModelsQuery } from "@seatrial/api"
import { ModelId } from "@seatrial/domain"
import { OrgModels } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { pageResponses } from "./lists.ts"
import { notFound } from "./publicErrors.ts"

const isModelId = Schema.is(ModelId)

/** Operations that read the organization's models. */
export const orgModelReads = Effect.gen(function* () {
  const models = yield* OrgModels
  const respondWithPage = yield* pageResponses

  return {
    list: ({ query }: { readonly query: OrgModelsQuery }) => {
      const { q, ...withoutSearch } = query
      const effective = q === "" ? withoutSearch : query
      const { cursor: _, limit: __, ...filters } = effective
      return respondWithPage(
        "listOrgModels",
        effective,
        (orgId, page) => models.list(orgId, { ...filters, ...page }),
        (row) => row
      )
    },
    get: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
      const { orgId } = yield* Caller
      const model = isModelId(params.id) ? yield* models.find(orgId, params.id) : Option.none()
      if (Option.isNone(model)) return yield* notFound
      return HttpServerResponse.jsonUnsafe(model.value)
    })
  }
})
