import { Caller, type RequestsQuery } from "@seatrial/api"
import { KeyId, ModelId, prefersOver, RequestId, signatureHeader, signedMediaType } from "@seatrial/domain"
import { Requests } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { emptyJsonPage, jsonPageAnswers, jsonText } from "./lists.ts"
import { invalidParameter, notFound, notSigned } from "./publicErrors.ts"
import { detached, ReceiptSigner, withPayload } from "./ReceiptSigner.ts"

const isRequestId = Schema.is(RequestId)
const isModelId = Schema.is(ModelId)
const isKeyId = Schema.is(KeyId)
const wantsSigned = prefersOver(signedMediaType, "application/json")
const byAccept = { vary: "Accept" } as const

/** The operations on requests and receipts, which both path families share. */
export const requestOperations = Effect.gen(function* () {
  const requests = yield* Requests
  const { sign } = yield* ReceiptSigner
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
    receipt: Effect.fnUntraced(function* ({
      params,
      request
    }: {
      readonly params: { readonly request_id: string }
      readonly request: HttpServerRequest.HttpServerRequest
    }) {
      const { orgId } = yield* Caller
      const signed = wantsSigned(request.headers.accept)
      // Who asked for a signature must not take an answer without one for it.
      if (signed && sign === null) return yield* notSigned
      if (!isRequestId(params.request_id)) return yield* notFound
      const found = yield* requests.findStoredReceipt(orgId, params.request_id)
      if (Option.isNone(found)) return yield* notFound
      if (sign === null) return jsonText(found.value.json)
      const receipt = sign(found.value, orgId)
      return signed
        ? HttpServerResponse.text(JSON.stringify(withPayload(receipt)), { contentType: signedMediaType, headers: byAccept })
        : HttpServerResponse.text(receipt.body, { contentType: "application/json", headers: { ...byAccept, [signatureHeader]: detached(receipt) } })
    })
  }
})
