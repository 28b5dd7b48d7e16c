import { Caller, type RequestsQuery } from "@seatrial/api"
import { KeyId, ModelId, prefersOver, RequestId, signatureHeader, signedMediaType } from "@seatrial/domain"
import { Requests } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { emptyJsonPage, jsonPageResponses, jsonText } from "./lists.ts"
import { invalidParameter, notFound, notSigned } from "./publicErrors.ts"
import { detached, ReceiptSigner, withPayload } from "./ReceiptSigner.ts"

const isRequestId = Schema.is(RequestId)
const isModelId = Schema.is(ModelId)
const isKeyId = Schema.is(KeyId)
const wantsSigned = prefersOver(signedMediaType, "application/json")
const byAccept = { vary: "Accept" } as const

/** Operations on requests and receipts. Both path families share them. */
export const requestOperations = Effect.gen(function* () {
  const requests = yield* Requests
  const { sign } = yield* ReceiptSigner
  const respondWithPage = yield* jsonPageResponses

  return {
    list: (operation: string) =>
      Effect.fnUntraced(function* ({ query }: { readonly query: RequestsQuery }) {
        const { from, to } = query
        if (from !== undefined && to !== undefined && to <= from) return yield* invalidParameter("to", "to must be later than from.")
        return yield* respondWithPage(operation, query, (orgId, page) => {
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
      const record = yield* requests.findJson(orgId, params.request_id)
      if (Option.isNone(record)) return yield* notFound
      return jsonText(record.value)
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
      // A caller that requires a signature must not get an unsigned receipt.
      if (signed && sign === null) return yield* notSigned
      if (!isRequestId(params.request_id)) return yield* notFound
      const stored = yield* requests.findStoredReceipt(orgId, params.request_id)
      if (Option.isNone(stored)) return yield* notFound
      if (sign === null) return jsonText(stored.value.json)
      const receipt = sign(stored.value, orgId)
      return signed
        ? HttpServerResponse.text(JSON.stringify(withPayload(receipt)), { contentType: signedMediaType, headers: byAccept })
        : HttpServerResponse.text(receipt.body, { contentType: "application/json", headers: { ...byAccept, [signatureHeader]: detached(receipt) } })
    })
  }
})
