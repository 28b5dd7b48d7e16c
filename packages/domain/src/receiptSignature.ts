import { Schema } from "effect"

/** Header of a receipt's answer with its signature: a JWS in its compact form whose payload, the answer's body, is left out (RFC 7515, appendix F). */
export const signatureHeader = "seatrial-signature"

/** Media type of a JWS in its JSON form: what a caller accepts who wants receipt and signature in one document. */
export const signedMediaType = "application/jose+json"

/**
 * The protected header of a receipt's signature, which is signed together with the receipt: `kid` is the key's thumbprint (RFC 7638), `iss` the installation that issued the
 * receipt, `org` the id of the organization that made the request. Signatures of earlier versions have neither `iss` nor `org`. The type keeps a signature of anything else from
 * passing for a receipt's.
 */
export const SignatureHeader = Schema.Struct({
  alg: Schema.Literal("EdDSA"),
  kid: Schema.String,
  typ: Schema.Literal("seatrial-receipt+jws"),
  iss: Schema.optionalKey(Schema.String),
  org: Schema.optionalKey(Schema.String)
})
export type SignatureHeader = typeof SignatureHeader.Type

const Base64Url = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]+$/u))

/** A receipt and its signature in one: a JWS in its flattened JSON form. `payload` is the receipt's canonical JSON (RFC 8785). */
export const SignedReceipt = Schema.Struct({ payload: Base64Url, protected: Base64Url, signature: Base64Url }).annotate({ identifier: "SignedReceipt" })
export type SignedReceipt = typeof SignedReceipt.Type

/** The public half of a key that receipts are or were signed with, as a JWK. */
export const SigningKey = Schema.Struct({
  kty: Schema.Literal("OKP"),
  crv: Schema.Literal("Ed25519"),
  x: Base64Url,
  kid: Base64Url,
  alg: Schema.Literal("EdDSA"),
  use: Schema.Literal("sig")
}).annotate({ identifier: "SigningKey" })
export type SigningKey = typeof SigningKey.Type

/** Every key that a receipt may be signed with, the current one first; empty where the installation signs none. */
export const SigningKeySet = Schema.Struct({ keys: Schema.Array(SigningKey) }).annotate({ identifier: "SigningKeySet" })
export type SigningKeySet = typeof SigningKeySet.Type
