import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { namesTag, tagOf } from "./entityTag.ts"
import { ReceiptSigner } from "./ReceiptSigner.ts"

/** Seconds that verifiers may cache the keys. A new key must be published at least this long before it signs. */
const maxAge = 300

/** The public signing keys of receipts. Requires no API key. */
export const signingKeysOperation = Effect.gen(function* () {
  const { keySet } = yield* ReceiptSigner
  const body = new TextEncoder().encode(JSON.stringify(keySet))
  const headers = { etag: tagOf(body), "cache-control": `public, max-age=${maxAge}` }
  const full = HttpServerResponse.uint8Array(body, { contentType: "application/json", headers })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
    Effect.succeed(namesTag(request.headers["if-none-match"], headers.etag) ? unchanged : full)
})
