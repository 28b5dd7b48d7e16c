import { Schema } from "effect"

/**
 * Response header with a receipt's signature: a compact JWS whose payload, the response body, is detached (RFC 7515,
 * appendix F).
 */
export const signatureHeader = "seatrial-signature"

/** Media type of a JWS in JSON serialization. A caller accepts it to get receipt and signature in one document. */
export const signedMediaType = "application/jose+json"

const Base64Url = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]+$/u))

/**
 * Request header that asks for digests of the request and its answer in the receipt's signature. Its value is
 * `digestAlgorithm`.
 */
export const digestHeader = "seatrial-receipt-digest"

/** Header with the salt of a receipt's digests. The answer has it, and a request may bring its own salt in it. */
export const digestSaltHeader = "seatrial-receipt-salt"

/** HMAC (RFC 2104) with SHA-256, with the salt as its key. */
export const digestAlgorithm = "hmac-sha-256"

/**
 * Salted digests of the body of a request and of its answer, in base64url. `answer` is absent if the caller left before
 * the end of the answer.
 */
export const ReceiptDigests = Schema.Struct({ alg: Schema.Literal(digestAlgorithm), request: Base64Url, answer: Schema.optionalKey(Base64Url) })
export type ReceiptDigests = typeof ReceiptDigests.Type

/**
 * The protected header of a receipt's signature. `kid` is the key's thumbprint (RFC 7638), `iss` the installation that
 * issued the receipt, `org` the id of the organization that made the request. Signatures of earlier versions lack `iss`
 * and `org`. `digests` is present if the request asked for it. The type prevents that a signature over other content
 * passes as a receipt's.
 */
export const SignatureHeader = Schema.Struct({
  alg: Schema.Literal("EdDSA"),
  kid: Schema.String,
  typ: Schema.Literal("seatrial-receipt+jws"),
  iss: Schema.optionalKey(Schema.String),
  org: Schema.optionalKey(Schema.String),
  digests: Schema.optionalKey(ReceiptDigests)
})
export type SignatureHeader = typeof SignatureHeader.Type

/**
 * A receipt and its signature in one document: a JWS in flattened JSON serialization. `payload` is the receipt's
 * canonical JSON (RFC 8785).
 */
export const SignedReceipt = Schema.Struct({ payload: Base64Url, protected: Base64Url, signature: Base64Url }).annotate({ identifier: "SignedReceipt" })
export type SignedReceipt = typeof SignedReceipt.Type

/** The public key of a current or former receipt signing key, as a JWK. */
export const SigningKey = Schema.Struct({
  kty: Schema.Literal("OKP"),
  crv: Schema.Literal("Ed25519"),
  x: Base64Url,
  kid: Base64Url,
  alg: Schema.Literal("EdDSA"),
  use: Schema.Literal("sig")
}).annotate({ identifier: "SigningKey" })
export type SigningKey = typeof SigningKey.Type

/** All public keys that verify receipts, the current one first; empty if the installation does not sign. */
export const SigningKeySet = Schema.Struct({ keys: Schema.Array(SigningKey) }).annotate({ identifier: "SigningKeySet" })
export type SigningKeySet = typeof SigningKeySet.Type
