import { assert, describe, it } from "@effect/vitest"
import { canonicalJson, type Receipt, SignedReceipt, type SigningKeySet } from "@seatrial/domain"
import { Arbitrary, Effect, Option, Random, Result, Schema } from "effect"
import { calculateJwkThumbprint, exportJWK, FlattenedSign, generateKeyPair } from "jose"
import { signingKeysOf, verifyReceipt } from "../src/index.ts"

const receipt: Receipt = {
  request_id: "req_01m7yy6j10e68sjmjgj4e3zctx",
  model: "acme/tïny\u2028",
  hf_revision: "77c4b35b397353ec9b348d6f31999f4f12953632",
  engine_version: "reference-0.1.0",
  verification: { checks: [{ name: "template_agrees", passed: true, detail: "12 of 12" }], outputFingerprints: [], fingerprintCard: null },
  endpoint: "/v1/chat/completions",
  usage: { input_tokens: 21, output_tokens: 64, cache_read_tokens: null, cache_write_tokens: null },
  prices: { input_micros_per_mtok: "1", output_micros_per_mtok: "2", cache_read_micros_per_mtok: "0", cache_write_micros_per_mtok: "0" },
  cost_micros: "0",
  ttft_ms: 41.5,
  latency_ms: 630.25,
  finish_reason: "stop",
  status_code: 200,
  streamed: true,
  created_at: "2026-03-02T09:30:00.630Z"
}
const body = canonicalJson(receipt)

/** A key and its signatures, created by another library than the one under test. */
const makeSigner = Effect.promise(async () => {
  const { privateKey, publicKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true })
  const jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(jwk)
  const set = Option.getOrThrow(signingKeysOf(JSON.stringify({ keys: [{ ...jwk, kid, alg: "EdDSA", use: "sig" }] })))
  const sign = (payload: string, header: Readonly<Record<string, unknown>> = {}) =>
    Effect.promise(() =>
      new FlattenedSign(new TextEncoder().encode(payload)).setProtectedHeader({ alg: "EdDSA", kid, typ: "seatrial-receipt+jws", ...header }).sign(privateKey)
    )
  return { set, sign, kid }
})

const reasonOf = (options: { readonly document: string; readonly signature?: string; readonly keys: SigningKeySet }) =>
  Effect.map(Effect.result(verifyReceipt(options)), (result) => (Result.isFailure(result) ? result.failure.reason : "verified"))

describe("a receipt", () => {
  it.effect("is verified in each of its forms, even if its JSON was reformatted", () =>
    Effect.gen(function* () {
      const { kid, set, sign } = yield* makeSigner
      const jws = yield* sign(body)
      const signature = `${jws.protected}..${jws.signature}`
      const verified = yield* verifyReceipt({ document: JSON.stringify(jws), keys: set })
      // A signature of a version that included neither issuer nor organization.
      assert.deepStrictEqual(verified, { receipt, kid, issuer: null, organization: null, digests: null, verbatim: true })
      assert.deepStrictEqual(yield* verifyReceipt({ document: body, signature, keys: set }), verified)
      assert.deepStrictEqual(yield* verifyReceipt({ document: `${body}\n`, signature: ` ${signature}\n`, keys: set }), verified)
      const shuffled = JSON.stringify(Object.fromEntries(Object.entries(receipt).reverse()), null, 2)
      assert.deepStrictEqual(yield* verifyReceipt({ document: shuffled, signature, keys: set }), { ...verified, verbatim: false })
    })
  )

  it.effect("names its issuer and its organization if they are signed; another one is not genuine", () =>
    Effect.gen(function* () {
      const { set, sign } = yield* makeSigner
      const jws = yield* sign(body, { iss: "https://seatrial.example", org: "org_a" })
      const verified = yield* verifyReceipt({ document: JSON.stringify(jws), keys: set })
      assert.deepInclude(verified, { issuer: "https://seatrial.example", organization: "org_a" })
      const { protected: other } = yield* sign(body, { iss: "https://seatrial.example", org: "org_b" })
      assert.strictEqual(yield* reasonOf({ document: JSON.stringify({ ...jws, protected: other }), keys: set }), "not_genuine")
    })
  )

  it.effect("is rejected after a change of any byte, or of any byte of its signature", () =>
    Effect.gen(function* () {
      const { set, sign } = yield* makeSigner
      const jws = Schema.decodeUnknownSync(SignedReceipt)(yield* sign(body))
      const signature = `${jws.protected}..${jws.signature}`
      const document = JSON.stringify(jws)
      const Change = Schema.Struct({
        of: Schema.Literals(["body", "signature", "document"]),
        at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })),
        byte: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
      })
      const changed = (text: string, at: number, byte: number) => {
        const bytes = Buffer.from(text, "utf8")
        const place = at % bytes.length
        bytes[place] = bytes[place] === byte ? (byte + 1) % 256 : byte
        return bytes.toString("utf8")
      }
      const seed = String(yield* Random.nextIntBetween(0, 2 ** 31))
      const outcome = yield* Arbitrary.checkEffect(
        Arbitrary.schema(Change),
        ({ at, byte, of }) => {
          const options =
            of === "body"
              ? { document: changed(body, at, byte), signature, keys: set }
              : of === "signature"
                ? { document: body, signature: changed(signature, at, byte), keys: set }
                : { document: changed(document, at, byte), keys: set }
          return Effect.map(reasonOf(options), (reason) => reason !== "verified")
        },
        { runs: 500, seed }
      )
      assert.isUndefined(Arbitrary.formatCheckFailure(outcome), `seed ${seed}`)
    })
  )

  it.effect("that is not verified reports why", () =>
    Effect.gen(function* () {
      const { set, sign } = yield* makeSigner
      const other = yield* makeSigner
      const jws = yield* sign(body)
      const signature = `${jws.protected}..${jws.signature}`
      const none: SigningKeySet = { keys: [] }
      const cheap = canonicalJson({ ...receipt, cost_micros: "1" })
      const cases: ReadonlyArray<readonly [expected: string, options: Parameters<typeof verifyReceipt>[0]]> = [
        ["not_genuine", { document: cheap, signature, keys: set }],
        ["not_genuine", { document: JSON.stringify({ ...jws, payload: Buffer.from(cheap).toString("base64url") }), keys: set }],
        ["unknown_key", { document: body, signature, keys: none }],
        ["unknown_key", { document: body, signature, keys: other.set }],
        // The same name for another key does not help.
        ["not_genuine", { document: body, signature, keys: { keys: other.set.keys.map((key) => ({ ...key, kid: set.keys[0]?.kid ?? "" })) } }],
        ["malformed_signature", { document: body, keys: set }],
        ["malformed_signature", { document: body, signature: jws.signature, keys: set }],
        ["malformed_signature", { document: body, signature: `${jws.protected}..${jws.signature.slice(0, -1)}`, keys: set }],
        ["malformed_signature", { document: JSON.stringify(jws), signature, keys: set }],
        ["not_a_receipt", { document: "", signature, keys: set }],
        ["not_a_receipt", { document: "{", signature, keys: set }],
        // It is undefined which of the two a reader uses.
        ["not_a_receipt", { document: body.replace("{", '{"cost_micros":"1",'), signature, keys: set }],
        // Too long or too deep to read.
        ["not_a_receipt", { document: JSON.stringify({ ...receipt, model: "x".repeat(30_000_000) }), signature, keys: set }],
        ["not_a_receipt", { document: `${"[".repeat(200_000)}${"]".repeat(200_000)}`, signature, keys: set }],
        ["not_a_receipt", { document: `{"payload":${"[".repeat(200_000)}${"]".repeat(200_000)}}`, keys: set }],
        ["not_a_receipt", { document: JSON.stringify(yield* sign('{"a":1}')), keys: set }],
        ["malformed_signature", { document: JSON.stringify(yield* sign(body, { typ: "JWT" })), keys: set }],
        ["malformed_signature", { document: JSON.stringify(yield* sign(body, { cty: "x" })), keys: set }]
      ]
      for (const [expected, options] of cases) assert.strictEqual(yield* reasonOf(options), expected, JSON.stringify(options).slice(0, 300))
    })
  )

  it.effect("that contains its signature and was changed reports which member is wrong", () =>
    Effect.gen(function* () {
      const { set, sign } = yield* makeSigner
      const { payload, protected: head, signature } = yield* sign(body)
      const cases = [
        [{ payload, protected: head, signature, note: "x" }, "note is not a known field"],
        [{ payload, protected: head }, "signature is required"],
        [{ payload, protected: head, signature: 1 }, "signature must be a string"]
      ] as const
      for (const [document, says] of cases) {
        const refused = yield* Effect.flip(verifyReceipt({ document: JSON.stringify(document), keys: set }))
        assert.strictEqual(refused.reason, "not_a_receipt")
        assert.include(refused.message, says)
      }
    })
  )

  it("keys of other types are skipped, and an invalid set of keys is none", () => {
    assert.deepStrictEqual(Option.getOrThrow(signingKeysOf('{"keys":[{"kty":"RSA","n":"x","e":"AQAB"}],"more":1}')), { keys: [] })
    for (const text of ["", "[]", "{}", '{"keys":{}}']) assert.isTrue(Option.isNone(signingKeysOf(text)), text)
  })
})
