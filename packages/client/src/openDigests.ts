import type { ReceiptDigests } from "@seatrial/domain"
import { Data, Effect, Option, Schema } from "effect"

/**
 * Why a request or response does not match a receipt. `malformed_salt`: the salt is not 16 bytes in base64url.
 * `no_digest`: the receipt has no digest of that part. `different`: the bytes or the salt differ from those of the
 * receipt.
 */
export class DigestMismatch extends Data.TaggedError("DigestMismatch")<{
  readonly reason: "malformed_salt" | "no_digest" | "different"
  readonly part: "request" | "answer" | null
  readonly message: string
}> {}

const saltLength = 16
const base64Url = Schema.decodeUnknownOption(Schema.Uint8ArrayFromBase64Url)
const encode = Schema.encodeSync(Schema.Uint8ArrayFromBase64Url)

const lacking = {
  request: "The receipt has no digest of the request: the request did not ask for it with the header seatrial-receipt-digest.",
  answer: "The receipt has no digest of the answer: the request did not ask for it, or the caller left before the end of the answer."
} as const

/**
 * Compares the bytes of a request, of a response, or of both with the digests of a verified receipt. `salt`: the header
 * `seatrial-receipt-salt` of the response.
 */
export const openDigests = Effect.fnUntraced(function* (options: {
  readonly digests: ReceiptDigests | null
  readonly salt: string
  readonly request?: Uint8Array
  readonly answer?: Uint8Array
}) {
  const salt = Option.filter(base64Url(options.salt.trim()), ({ length }) => length === saltLength)
  if (Option.isNone(salt)) {
    const message = "The salt is not 16 bytes in base64url. Use the value of the answer's header seatrial-receipt-salt."
    return yield* new DigestMismatch({ reason: "malformed_salt", part: null, message })
  }
  const imported = new Uint8Array(salt.value)
  const key = yield* Effect.promise(() => crypto.subtle.importKey("raw", imported, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]))
  for (const part of ["request", "answer"] as const) {
    const bytes = options[part]
    if (bytes === undefined) continue
    const digest = options.digests?.[part]
    if (digest === undefined) return yield* new DigestMismatch({ reason: "no_digest", part, message: lacking[part] })
    const actual = yield* Effect.promise(() => crypto.subtle.sign("HMAC", key, new Uint8Array(bytes)))
    if (encode(new Uint8Array(actual)) === digest) continue
    const message = `The ${part} or the salt does not match the receipt. Compare the exact bytes of the body.`
    return yield* new DigestMismatch({ reason: "different", part, message })
  }
})
