import { canonicalJson, Receipt, type ReceiptDigests, SignatureHeader, SignedReceipt, SigningKey, type SigningKeySet, schemaProblem } from "@seatrial/domain"
import { Data, Effect, Option, Predicate, Result, Schema } from "effect"

/**
 * Why a receipt is not verified. `not_a_receipt`: the document has none of a receipt's forms. `malformed_signature`:
 * the signature is invalid or of another type. `unknown_key`: none of the keys signed it. `not_genuine`: receipt and
 * signature do not match, so one of them was changed.
 */
export class NotVerified extends Data.TaggedError("NotVerified")<{
  readonly reason: "not_a_receipt" | "malformed_signature" | "unknown_key" | "not_genuine"
  readonly message: string
}> {}

export interface VerifiedReceipt {
  readonly receipt: Receipt
  /** The key that signed the receipt. */
  readonly kid: string
  /**
   * Who issued the receipt, and the id of the organization that made the request; null in receipts of versions that did
   * not sign them.
   */
  readonly issuer: string | null
  readonly organization: string | null
  /** Salted digests of request and response, which `openDigests` compares; null if the request did not ask for them. */
  readonly digests: ReceiptDigests | null
  /** Whether the document equals the signed bytes. If false, only white space or the order of members differs. */
  readonly verbatim: boolean
}

const parse = (text: string): Option.Option<unknown> => {
  try {
    return Option.some(JSON.parse(text))
  } catch {
    return Option.none()
  }
}

const bytesOf = (base64Url: string): Option.Option<Uint8Array<ArrayBuffer>> => {
  const decoded = Schema.decodeUnknownOption(Schema.Uint8ArrayFromBase64Url)(base64Url)
  // Reject other encodings of the same bytes.
  return Option.filter(
    Option.map(decoded, (bytes) => new Uint8Array(bytes)),
    (bytes) => Schema.encodeSync(Schema.Uint8ArrayFromBase64Url)(bytes) === base64Url
  )
}

const textOf = (bytes: Uint8Array): Option.Option<string> => {
  try {
    return Option.some(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return Option.none()
  }
}

const strict = { onExcessProperty: "error" } as const
const receiptOf = Schema.decodeUnknownOption(Receipt, strict)
const jwsOf = Schema.decodeUnknownResult(SignedReceipt, strict)
const headerOf = Schema.decodeUnknownOption(Schema.fromJsonString(SignatureHeader), strict)

/**
 * Number of member names in a JSON text. It exceeds the number of the value's members if a name is duplicated; readers
 * disagree on the value of a duplicate.
 */
const namesIn = (json: string): number => [...json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gu)].filter(([, colon]) => colon !== undefined).length
const membersOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inside = Object.values(value).reduce<number>((sum, member) => sum + membersOf(member), 0)
  return Array.isArray(value) ? inside : inside + Object.keys(value).length
}

/** Maximum document length in characters, many times the length of any receipt. */
const mostCharacters = 2 ** 20

/** None if the value is nested too deeply to traverse. */
const canonicalOf = (json: string): Option.Option<string> => {
  if (json.length > mostCharacters) return Option.none()
  return Option.flatMap(parse(json), (value) =>
    Option.flatten(Result.getSuccess(Result.try(() => (namesIn(json) === membersOf(value) ? Option.some(canonicalJson(value)) : Option.none()))))
  )
}

const refuse = (reason: NotVerified["reason"], message: string) => Effect.fail(new NotVerified({ reason, message }))

/** Converts both forms of a signed receipt to the signed text and the parts of the signature. */
const partsOf = Effect.fnUntraced(function* (document: string, signature: string | undefined) {
  const text = canonicalOf(document)
  if (Option.isNone(text)) return yield* refuse("not_a_receipt", "The document is not JSON, is larger than any receipt, or has a duplicate member name.")
  const signed = Option.filter(parse(document), Predicate.hasProperty("payload"))
  if (Option.isSome(signed)) {
    const jws = jwsOf(signed.value)
    if (Result.isFailure(jws)) {
      const { message, param } = schemaProblem(jws.failure.issue)
      return yield* refuse("not_a_receipt", `The document is not a signed receipt as Seatrial issues it: ${param ?? "it"} ${message}.`)
    }
    if (signature !== undefined) return yield* refuse("malformed_signature", "The document contains its signature. Do not pass another one.")
    const payload = Option.flatMap(bytesOf(jws.success.payload), textOf)
    if (Option.isNone(payload)) return yield* refuse("not_a_receipt", "The payload of the document is not text in base64url.")
    return { text: payload.value, verbatim: true, head: jws.success.protected, signature: jws.success.signature }
  }
  if (signature === undefined) {
    return yield* refuse(
      "malformed_signature",
      "The document contains no signature. Pass the value of the header seatrial-signature with it, or read the receipt with Accept: application/jose+json."
    )
  }
  const [, head, own] = /^([\w-]+)\.\.([\w-]+)$/u.exec(signature.trim()) ?? []
  if (head === undefined || own === undefined) return yield* refuse("malformed_signature", "The signature is not a value of the header seatrial-signature.")
  return { text: text.value, verbatim: text.value === document.trimEnd(), head, signature: own }
})

/**
 * Verifies the signature of a receipt offline. `document`: a response to `Accept: application/jose+json`, or a
 * receipt's JSON with the value of the header `seatrial-signature` as `signature`. `keys`: a response of
 * `/.well-known/jwks.json` from any time after the receipt was read.
 */
export const verifyReceipt = Effect.fnUntraced(function* (options: { readonly document: string; readonly signature?: string; readonly keys: SigningKeySet }) {
  const { head, signature, text, verbatim } = yield* partsOf(options.document, options.signature)
  const header = Option.flatMap(Option.flatMap(bytesOf(head), textOf), headerOf)
  if (Option.isNone(header)) return yield* refuse("malformed_signature", "This is not the signature of a receipt: its header has unexpected values.")
  const { digests = null, iss = null, kid, org = null } = header.value
  const signingKey = options.keys.keys.find((key) => key.kid === kid)
  if (signingKey === undefined) {
    const known = options.keys.keys.length
    return yield* refuse(
      "unknown_key",
      `The key ${kid} of the signature is not among the ${known} keys. Was the receipt issued by another installation, or was the key withdrawn?`
    )
  }
  const signed = bytesOf(signature)
  if (Option.isNone(signed) || signed.value.length !== 64) return yield* refuse("malformed_signature", "The signature is not 64 bytes in base64url.")
  const { crv, kty, x } = signingKey
  const key = yield* Effect.tryPromise({
    try: () => crypto.subtle.importKey("jwk", { crv, kty, x }, "Ed25519", false, ["verify"]),
    catch: () => new NotVerified({ reason: "unknown_key", message: `The key ${kid} is not an Ed25519 key.` })
  })
  const input = new TextEncoder().encode(`${head}.${Schema.encodeSync(Schema.Uint8ArrayFromBase64Url)(new TextEncoder().encode(text))}`)
  const genuine = yield* Effect.promise(() => crypto.subtle.verify("Ed25519", key, signed.value, input))
  if (!genuine) return yield* refuse("not_genuine", "Receipt and signature do not match: one of them was changed.")
  const receipt = Option.flatMap(parse(text), receiptOf)
  if (Option.isNone(receipt)) return yield* refuse("not_a_receipt", "The signature is genuine, but this program does not know the form of the signed document.")
  const verified: VerifiedReceipt = { receipt: receipt.value, kid, issuer: iss, organization: org, digests, verbatim }
  return verified
})

const keyOf = Schema.decodeUnknownOption(SigningKey)

/** Public keys from the text of a JWK Set. Keys of other types are skipped. None if the text is not a JWK Set. */
export const signingKeysOf = (json: string): Option.Option<SigningKeySet> =>
  Option.map(Option.flatMap(parse(json), Schema.decodeUnknownOption(Schema.Struct({ keys: Schema.Array(Schema.Unknown) }))), ({ keys }) => ({
    keys: keys.flatMap((key) => Option.toArray(keyOf(key)))
  }))
