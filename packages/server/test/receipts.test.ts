import { assert, describe, it as each, layer } from "@effect/vitest"
import { canonicalJson, Ids, prefersOver, Receipt, type ReceiptDigests, RequestId, SignedReceipt, SigningKeySet, zeroPrices } from "@seatrial/domain"
import { Database, Metering } from "@seatrial/store"
import { beginRequest, makeCaller, makeServing, makeTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Context, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { createLocalJWKSet, flattenedVerify } from "jose"
import { inject } from "vitest"
import { ServerSettings } from "../src/index.ts"
import { operations } from "./conformance.ts"
import { type Answer, jsonOf, layerStage, layerStageOn, makeTenant, Stage } from "./stage.ts"

const firstKey = Buffer.alloc(32, 1).toString("base64")
const secondKey = Buffer.alloc(32, 2).toString("base64")
const keySetOf = (answer: Answer) => Schema.decodeUnknownSync(SigningKeySet)(jsonOf(answer))
const keysPath = "/.well-known/jwks.json"
const signed = { accept: "application/jose+json" }

/** The payload of a JWS that an independent library verified with these keys. */
const openWith = (keys: SigningKeySet, jws: SignedReceipt) =>
  Effect.promise(async () => {
    const { payload, protectedHeader } = await flattenedVerify(jws, createLocalJWKSet({ keys: keys.keys.map((key) => ({ ...key })) }), {
      algorithms: ["EdDSA"]
    })
    return { text: new TextDecoder().decode(payload), header: protectedHeader }
  })
const jwsOf = Schema.decodeUnknownSync(Schema.fromJsonString(SignedReceipt), { onExcessProperty: "error" })
const attached = (body: string, header: unknown): SignedReceipt => {
  const [head = "", , signature = ""] = String(header).split(".")
  return { payload: Buffer.from(body).toString("base64url"), protected: head, signature }
}

let requestCount = 0
/** A request that a serving revision has answered, and a key of its organization. */
const served = Effect.fnUntraced(function* () {
  const metering = yield* Metering
  const slug = `receipts-${++requestCount}`
  const { caller, secret } = yield* makeCaller(slug)
  const serving = yield* makeServing(caller, slug)
  const request = Effect.fnUntraced(function* (latencyMs: number, digests: ReceiptDigests | null = null) {
    const id = yield* (yield* Ids).make(RequestId)
    const { keyId, orgId } = caller
    const { modelId, revisionId } = serving
    const start = { id, orgId, keyId, endpoint: "/v1/completions", streamed: false, modelId, model: 'a"b/ti\u00e9ny\u2028', revisionId }
    yield* beginRequest(metering, start)
    yield* metering.end({
      ...{ ...start, statusCode: 200, usage: { input_tokens: 3, output_tokens: 4, cache_read_tokens: null, cache_write_tokens: 0 }, ttftMs: 1e-7, latencyMs },
      ...{ finishReason: "stop", error: null, note: null, receipt: { prices: zeroPrices, hfRevision: "c0ffee", engineVersion: "reference-0.1.0", digests } }
    })
    return id
  })
  return { request, serving, orgId: caller.orgId, key: Redacted.value(secret) }
})

layer(layerStage({ SEATRIAL_SIGNING_KEYS: firstKey }), { excludeTestServices: true })("a receipt over HTTP", (it) => {
  it.effect("has a signature that another library verifies, in a header or as one JWS, in both families", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, orgId, request } = yield* served()
      const keys = keySetOf(yield* call("GET", keysPath))
      assert.lengthOf(keys.keys, 1)
      for (const latency of [1e21, 0.1, 630.25]) {
        const id = yield* request(latency)
        for (const family of ["/v1", "/v1/org"]) {
          const plain = yield* call("GET", `${family}/receipts/${id}`, { key })
          const receipt = Schema.decodeUnknownSync(Receipt, { onExcessProperty: "error" })(jsonOf(plain))
          assert.deepStrictEqual([receipt.request_id, receipt.latency_ms], [id, latency])
          // The body is exactly the signed bytes.
          assert.strictEqual(plain.text, canonicalJson(jsonOf(plain)))
          assert.deepStrictEqual([plain.headers["content-type"], plain.headers.vary], ["application/json", "Accept"])
          const opened = yield* openWith(keys, attached(plain.text, plain.headers["seatrial-signature"]))
          assert.strictEqual(opened.text, plain.text)
          const header = { alg: "EdDSA", iss: "seatrial", kid: keys.keys[0]?.kid ?? "", org: orgId, typ: "seatrial-receipt+jws" }
          assert.deepStrictEqual(opened.header, header)

          const jws = yield* call("GET", `${family}/receipts/${id}`, { key, headers: signed })
          assert.deepStrictEqual([jws.headers["content-type"], jws.headers.vary], ["application/jose+json", "Accept"])
          assert.strictEqual((yield* openWith(keys, jwsOf(jws.text))).text, plain.text)
          // Signatures are deterministic.
          assert.deepStrictEqual(attached(plain.text, plain.headers["seatrial-signature"]), jwsOf(jws.text))
          assert.strictEqual((yield* call("GET", `${family}/receipts/${id}`, { key, headers: signed })).text, jws.text)
        }
      }
    })
  )

  it.effect("has the digests that its request asked for in the signed header, and its body stays the contract's", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, orgId, request } = yield* served()
      const keys = keySetOf(yield* call("GET", keysPath))
      const digests = { alg: "hmac-sha-256", request: "cmVxdWVzdA", answer: "YW5zd2Vy" } as const
      const id = yield* request(1, digests)
      const plain = yield* call("GET", `/v1/receipts/${id}`, { key })
      Schema.decodeUnknownSync(Receipt, { onExcessProperty: "error" })(jsonOf(plain))
      const { header } = yield* openWith(keys, attached(plain.text, plain.headers["seatrial-signature"]))
      assert.deepStrictEqual<unknown>(header, { alg: "EdDSA", iss: "seatrial", kid: keys.keys[0]?.kid ?? "", org: orgId, typ: "seatrial-receipt+jws", digests })
    })
  )

  it.effect("is one JWS only if the caller accepts that", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, request } = yield* served()
      const id = yield* request(1)
      const types: ReadonlyArray<readonly [accept: string, type: string]> = [
        ["*/*", "application/json"],
        ["application/json", "application/json"],
        ["text/html", "application/json"],
        ["application/jose+json;q=0", "application/json"],
        ["application/jose+json;q=0.2, application/json", "application/json"],
        ["application/jose+json", "application/jose+json"],
        ["Application/JOSE+json; q=0.9, application/json;q=0.8, */*;q=0.1", "application/jose+json"]
      ]
      for (const [accept, type] of types) {
        assert.strictEqual((yield* call("GET", `/v1/receipts/${id}`, { key, headers: { accept } })).headers["content-type"], type, accept)
      }
      const stranger = yield* makeTenant()
      assert.strictEqual((yield* call("GET", `/v1/receipts/${id}`, { key: stranger.key, headers: signed })).status, 404)
      assert.strictEqual((yield* call("GET", `/v1/receipts/${id}`, { headers: signed })).status, 401)
    })
  )

  it.effect("has the same verification for every request of a revision, frozen at activation", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* SqlClient.SqlClient
      const { key, orgId, request, serving } = yield* served()
      const verificationOf = (id: string) =>
        Effect.map(call("GET", `/v1/receipts/${id}`, { key }), (answer) => Schema.decodeUnknownSync(Receipt)(jsonOf(answer)).verification)
      const first = yield* verificationOf(yield* request(1))
      assert.isNotEmpty(first?.checks ?? [])
      yield* sql`UPDATE revisions SET checks = jsonb_set(checks, '{checks}', '[]') WHERE org_id = ${orgId} AND id = ${serving.revisionId}`
      assert.deepStrictEqual(yield* verificationOf(yield* request(2)), first)
      // No program can change it afterwards.
      for (const change of [
        "verification = '{\"checks\": []}'",
        "verification = NULL",
        "adapter_content_hash = 'other', base_hf_repo = 'o/o', base_hf_revision = 'o'"
      ]) {
        const tried = yield* Effect.exit(sql`UPDATE revisions SET ${sql.literal(change)} WHERE org_id = ${orgId} AND id = ${serving.revisionId}`)
        assert.isTrue(Exit.isFailure(tried), change)
      }
      assert.deepStrictEqual(yield* verificationOf(yield* request(3)), first)
    })
  )

  it.effect("is signed by keys that are public and cacheable", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { headers, status } = yield* call("GET", keysPath)
      assert.deepStrictEqual([status, headers["cache-control"]], [200, "public, max-age=300"])
      const again = yield* call("GET", keysPath, { headers: { "if-none-match": String(headers.etag) } })
      assert.deepStrictEqual([again.status, again.text], [304, ""])
      assert.strictEqual((yield* call("HEAD", keysPath)).status, 200)
    })
  )
})

class Address extends Context.Service<Address, Redacted.Redacted<string>>()("test/Address") {
  static readonly layer = Layer.effect(Address, makeTestDatabase(inject("postgres")))
}
/** A server of the installation with these keys. */
const startWith = Effect.fnUntraced(function* (keys: string) {
  return yield* Layer.build(Layer.fresh(layerStageOn(Database.layerUrl(yield* Address), { SEATRIAL_SIGNING_KEYS: keys })))
})

layer(Address.layer, { excludeTestServices: true })("servers of one installation", (it) => {
  it.effect("a former signing key still verifies, and the next key signs earlier receipts again", () =>
    Effect.gen(function* () {
      const before = yield* startWith(firstKey)
      const stages = { before: Context.get(before, Stage) }
      const { key, request } = yield* Effect.provideContext(served(), before)
      const path = `/v1/receipts/${yield* Effect.provideContext(request(1), before)}`
      const old = jwsOf((yield* stages.before.call("GET", path, { key, headers: signed })).text)
      const firstKeys = keySetOf(yield* stages.before.call("GET", keysPath)).keys
      const x = firstKeys[0]?.x ?? ""

      // First the new key is published, so that verifiers with cached keys know it before it signs. Then the order changes. Finally the old secret key is removed.
      for (const keys of [`${firstKey},${secondKey}`, `${secondKey}, ${firstKey}`, `${secondKey},public:${x}`]) {
        const { call } = Context.get(yield* startWith(keys), Stage)
        const now = keySetOf(yield* call("GET", keysPath))
        assert.lengthOf(now.keys, 2)
        const fresh = jwsOf((yield* call("GET", path, { key, headers: signed })).text)
        assert.strictEqual((yield* openWith(now, old)).text, (yield* openWith(now, fresh)).text)
        assert.strictEqual(fresh.signature === old.signature, keys.startsWith(firstKey), keys)
        assert.strictEqual((yield* openWith(now, fresh)).header?.kid, now.keys[0]?.kid)
      }

      // Two servers with the same keys return the same bytes.
      const [a, b] = yield* Effect.all([startWith(secondKey), startWith(secondKey)])
      const answers = yield* Effect.forEach([a, b], (context) => Context.get(context, Stage).call("GET", path, { key, headers: signed }))
      assert.strictEqual(answers[0]?.text, answers[1]?.text)

      // A removed key no longer verifies anything.
      const withdrawn = keySetOf(yield* Context.get(a, Stage).call("GET", keysPath))
      const refused = yield* Effect.exit(openWith(withdrawn, old))
      assert.isTrue(Exit.isFailure(refused))

      // Without a signing key, nothing is signed.
      const { call, logged } = Context.get(yield* startWith(""), Stage)
      const plain = yield* call("GET", path, { key })
      assert.deepStrictEqual([plain.status, plain.headers["seatrial-signature"]], [200, undefined])
      assert.deepStrictEqual(jsonOf(plain), jsonOf(yield* stages.before.call("GET", path, { key })))
      assert.deepStrictEqual(jsonOf(yield* call("GET", keysPath)), { keys: [] })
      const unsigned = yield* call("GET", path, { key, headers: signed })
      assert.strictEqual(unsigned.status, 406)
      assert.deepNestedInclude(jsonOf(unsigned), { "error.code": "not_acceptable", "error.param": "Accept" })
      assert.isTrue(logged.some((line) => line.includes("SEATRIAL_SIGNING_KEYS is not set")))
    })
  )
})

describe("the OpenAPI document", () => {
  each("has an example receipt that the example key verifies", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const example = (path: string, type: string) =>
          Object.values(operations.find((operation) => operation.path === path)?.responses["200"]?.content?.[type]?.examples ?? {})[0]?.value
        const keys = Schema.decodeUnknownSync(SigningKeySet)(example(keysPath, "application/json"))
        const path = "/v1/receipts/{request_id}"
        const { text } = yield* openWith(keys, Schema.decodeUnknownSync(SignedReceipt)(example(path, "application/jose+json")))
        assert.strictEqual(text, canonicalJson(example(path, "application/json")))
      })
    )
  )
})

describe("SEATRIAL_SIGNING_KEYS", () => {
  const readSettings = (text: string) =>
    Layer.build(ServerSettings.layerConfig).pipe(
      Effect.scoped,
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_CURSOR_KEY: "0123456789abcdef", SEATRIAL_SIGNING_KEYS: text }))),
      Effect.exit
    )
  const x = Buffer.alloc(32, 5).toString("base64url")
  const texts: ReadonlyArray<readonly [text: string, taken: boolean]> = [
    ["", true],
    [firstKey, true],
    [`${firstKey}, ${secondKey},public:${x}`, true],
    ["geheim", false],
    [Buffer.alloc(31, 1).toString("base64"), false],
    [Buffer.alloc(64, 1).toString("base64"), false],
    // The signing key must be a secret key.
    [`public:${x}`, false],
    [`${firstKey},public:`, false],
    [`${firstKey},${firstKey}`, false]
  ]
  each("is refused at startup if it is invalid, without being logged", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        for (const [text, taken] of texts) {
          const exit = yield* readSettings(text)
          assert.strictEqual(Exit.isSuccess(exit), taken, text)
          if (!taken) assert.notInclude(String(exit), text.slice(0, 20))
        }
      })
    )
  )
})

describe("Accept", () => {
  each("selects the JWS only if it prefers it", () => {
    const wants = prefersOver("application/jose+json", "application/json")
    for (const accept of [undefined, "", "*/*", "application/*", "x/application/jose+json", "application/jose+json;q=0.000"])
      assert.isFalse(wants(accept), accept)
    for (const accept of ["application/jose+json", "text/html, application/jose+json;v=1;q=0.5"]) assert.isTrue(wants(accept), accept)
  })
})
