import { Caller, type RequestsQuery } from "@seatrial/api"
import { KeyId, ModelId, RequestId } from "@seatrial/domain"
import { Requests } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { emptyJsonPage, jsonPageAnswers, jsonText } from "./lists.ts"
import { invalidParameter, notFound } from "./publicErrors.ts"

const isRequestId = Schema.is(RequestId)
const isModelId = Schema.is(ModelId)
const isKeyId = Schema.is(KeyId)

/** The operations on requests and receipts, which both path families share. */
export const requestOperations = Effect.gen(function* () {
  const requests = yield* Requests
  const answerPage = yield* jsonPageAnswers

  return {
    list: (operation: string) =>
      Effect.fnUntraced(function* ({ query }: { readonly query: RequestsQuery }) {
        const { from, to } = query
        if (from !== undefined && to !== undefined && to <= from) return yield* invalidParameter("to", "to has to be later than from.")
        return yield* answerPage(operation, query, (orgId, page) => {
          const { api_key_id: apiKeyId, model_id: modelId, status } = query
          if ((modelId !== undefined && !isModelId(modelId)) || (apiKeyId !== undefined && !isKeyId(apiKeyId))) return Effect.succeed(emptyJsonPage)
          return requests.listJson(orgId, {
            ...page,
            ...(modelId === undefined ? {} : { modelId }),
            ...(apiKeyId === undefined ? {} : { apiKeyId }),
            ...(status === undefined ? {} : { status }),
            ...(from === undefined ? {} : { from }),
            ...(to === undefined ? {} : { to })
          })
        })
      }),
    get: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly request_id: string } }) {
      const { orgId } = yield* Caller
      if (!isRequestId(params.request_id)) return yield* notFound
      const found = yield* requests.findJson(orgId, params.request_id)
      if (Option.isNone(found)) return yield* notFound
      return jsonText(found.value)
    }),
    receipt: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly request_id: string } }) {
      const { orgId } = yield* Caller
      if (!isRequestId(params.request_id)) return yield* notFound
      const found = yield* requests.findReceiptJson(orgId, params.request_id)
      if (Option.isNone(found)) return yield* notFound
      return jsonText(found.value)
    })
  }
})
