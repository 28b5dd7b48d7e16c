import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { namesTag, tagOf } from "./entityTag.ts"
import { ReceiptSigner } from "./ReceiptSigner.ts"

/** Seconds that a verifier may keep the keys without asking again. A new key is announced this long before the first signature with it. */
const maxAge = 300

/** The public keys of receipts' signatures, for everybody. */
export const signingKeysOperation = Effect.gen(function* () {
  const { keySet } = yield* ReceiptSigner
  const body = new TextEncoder().encode(JSON.stringify(keySet))
  const headers = { etag: tagOf(body), "cache-control": `public, max-age=${maxAge}` }
  const whole = HttpServerResponse.uint8Array(body, { contentType: "application/json", headers })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
    Effect.succeed(namesTag(request.headers["if-none-match"], headers.etag) ? unchanged : whole)
})
