import { canonicalJson, Receipt, type ReceiptDigests, SignatureHeader, SignedReceipt, SigningKey, type SigningKeySet, schemaProblem } from "@seatrial/domain"
import { Data, Effect, Option, Predicate, Result, Schema } from "effect"

/**
 * Why a receipt does not count as proven. `not_a_receipt`: the document is none of the forms that a receipt comes in. `malformed_signature`: the signature is none, or
 * of another kind. `unknown_key`: none of the keys signed it. `not_genuine`: receipt and signature do not belong together, so one of them was changed.
 */
export class NotVerified extends Data.TaggedError("NotVerified")<{
  readonly reason: "not_a_receipt" | "malformed_signature" | "unknown_key" | "not_genuine"
  readonly message: string
}> {}

export interface VerifiedReceipt {
  readonly receipt: Receipt
  /** The key that signed it. */
  readonly kid: string
  /** Who issued it, and the id of the organization that made the request; null in receipts of versions that did not sign them. */
  readonly issuer: string | null
  readonly organization: string | null
  /** Salted digests of request and answer, which `openDigests` opens; null if the request did not ask for them. */
  readonly digests: ReceiptDigests | null
  /** Whether the document is, byte for byte, what was signed; else white space or the order of members is another. */
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
  // Another spelling of the same bytes is another text than what was given out.
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

/** How many members the objects of a JSON text name: more than the value has where a name stands twice, of which every reader takes one as it likes. */
const namesIn = (json: string): number => [...json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gu)].filter(([, colon]) => colon !== undefined).length
const membersOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inside = Object.values(value).reduce<number>((sum, member) => sum + membersOf(member), 0)
  return Array.isArray(value) ? inside : inside + Object.keys(value).length
}

/** Characters of the longest document that is read: many times those of any receipt. */
const mostCharacters = 2 ** 20

/** None also where members stand so deep within one another that nobody can walk through them. */
const canonicalOf = (json: string): Option.Option<string> => {
  if (json.length > mostCharacters) return Option.none()
  return Option.flatMap(parse(json), (value) =>
    Option.flatten(Result.getSuccess(Result.try(() => (namesIn(json) === membersOf(value) ? Option.some(canonicalJson(value)) : Option.none()))))
  )
}

const refuse = (reason: NotVerified["reason"], message: string) => Effect.fail(new NotVerified({ reason, message }))

/** The two forms of a signed receipt as one: what was signed, and the parts of the signature. */
const partsOf = Effect.fnUntraced(function* (document: string, signature: string | undefined) {
  const text = canonicalOf(document)
  if (Option.isNone(text)) return yield* refuse("not_a_receipt", "The document is no JSON of a receipt's size, or names a member twice.")
  const signed = Option.filter(parse(document), Predicate.hasProperty("payload"))
  if (Option.isSome(signed)) {
    const jws = jwsOf(signed.value)
    if (Result.isFailure(jws)) {
      const { message, param } = schemaProblem(jws.failure.issue)
      return yield* refuse("not_a_receipt", `The document is no signed receipt as it was given out: ${param ?? "it"} ${message}.`)
    }
    if (signature !== undefined) return yield* refuse("malformed_signature", "The document has its signature inside; another beside it means nothing.")
    const payload = Option.flatMap(bytesOf(jws.success.payload), textOf)
    if (Option.isNone(payload)) return yield* refuse("not_a_receipt", "The payload of the document is no text in base64url.")
    return { text: payload.value, verbatim: true, head: jws.success.protected, signature: jws.success.signature }
  }
  if (signature === undefined) {
    return yield* refuse(
      "malformed_signature",
      "The document has no signature inside. Give the value of the header seatrial-signature beside it, or read the receipt with Accept: application/jose+json."
    )
  }
  const [, head, own] = /^([\w-]+)\.\.([\w-]+)$/u.exec(signature.trim()) ?? []
  if (head === undefined || own === undefined) return yield* refuse("malformed_signature", "The signature is not that of a header seatrial-signature.")
  return { text: text.value, verbatim: text.value === document.trimEnd(), head, signature: own }
})

/**
 * Holds a receipt to its signature, without asking anybody: `document` is what `Accept: application/jose+json` gave, or a receipt's JSON with the value of the header
 * `seatrial-signature` beside it; `keys` what `/.well-known/jwks.json` gave, at any time since the receipt was read.
 */
export const verifyReceipt = Effect.fnUntraced(function* (options: { readonly document: string; readonly signature?: string; readonly keys: SigningKeySet }) {
  const { head, signature, text, verbatim } = yield* partsOf(options.document, options.signature)
  const header = Option.flatMap(Option.flatMap(bytesOf(head), textOf), headerOf)
  if (Option.isNone(header)) return yield* refuse("malformed_signature", "The signature is not one of a receipt: its header says something else.")
  const { digests = null, iss = null, kid, org = null } = header.value
  const found = options.keys.keys.find((key) => key.kid === kid)
  if (found === undefined) {
    const known = options.keys.keys.length
    return yield* refuse("unknown_key", `The signature is by the key ${kid}, which is none of the ${known} given. Is it another installation's, or withdrawn?`)
  }
  const signed = bytesOf(signature)
  if (Option.isNone(signed) || signed.value.length !== 64) return yield* refuse("malformed_signature", "The signature is not 64 bytes in base64url.")
  const { crv, kty, x } = found
  const key = yield* Effect.tryPromise({
    try: () => crypto.subtle.importKey("jwk", { crv, kty, x }, "Ed25519", false, ["verify"]),
    catch: () => new NotVerified({ reason: "unknown_key", message: `The key ${kid} is no Ed25519 key.` })
  })
  const input = new TextEncoder().encode(`${head}.${Schema.encodeSync(Schema.Uint8ArrayFromBase64Url)(new TextEncoder().encode(text))}`)
  const genuine = yield* Effect.promise(() => crypto.subtle.verify("Ed25519", key, signed.value, input))
  if (!genuine) return yield* refuse("not_genuine", "Receipt and signature do not belong together: one of them was changed.")
  const receipt = Option.flatMap(parse(text), receiptOf)
  if (Option.isNone(receipt)) return yield* refuse("not_a_receipt", "The signature is genuine, and what it is of is no receipt that this program knows.")
  const verified: VerifiedReceipt = { receipt: receipt.value, kid, issuer: iss, organization: org, digests, verbatim }
  return verified
})

const keyOf = Schema.decodeUnknownOption(SigningKey)

/** Public keys from the text of a JWK Set; keys of other kinds are passed over. None where it is no such set. */
export const signingKeysOf = (json: string): Option.Option<SigningKeySet> =>
  Option.map(Option.flatMap(parse(json), Schema.decodeUnknownOption(Schema.Struct({ keys: Schema.Array(Schema.Unknown) }))), ({ keys }) => ({
    keys: keys.flatMap((key) => Option.toArray(keyOf(key)))
  }))
