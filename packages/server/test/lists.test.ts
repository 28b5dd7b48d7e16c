import { assert, layer } from "@effect/vitest"
import { Ids, type KeyId, ModelId, type OrgId, RequestId, RequestRecord, RevisionId, zeroPrices } from "@seatrial/domain"
import { ApiKeys, Metering } from "@seatrial/store"
import { beginRequest } from "@seatrial/store/testing"
import { Clock, Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const RequestPage = Schema.Struct({ data: Schema.Array(RequestRecord), next_cursor: Schema.NullOr(Schema.String) })
const pageOf = (answer: Answer) => Schema.decodeUnknownSync(RequestPage)(jsonOf(answer))

const modelA = Schema.decodeSync(ModelId)("mdl_0189000000000000000000000a")
const modelB = Schema.decodeSync(ModelId)("mdl_0189000000000000000000000b")
const revisionId = Schema.decodeSync(RevisionId)("rev_01890000000000000000000000")
const usage = { input_tokens: 3, output_tokens: 4, cache_read_tokens: null, cache_write_tokens: 0 }

const statuses = [200, 200, 404, 429, 500, 503]

/** A request that ended; `at` in Unix milliseconds. */
const end = Effect.fnUntraced(function* (owner: { readonly orgId: OrgId; readonly keyId: KeyId }, at: number, index: number) {
  const metering = yield* Metering
  const ids = yield* Ids
  const id = yield* ids.make(RequestId, at)
  const common = { id, orgId: owner.orgId, keyId: owner.keyId, endpoint: "/v1/chat/completions", streamed: index % 2 === 0 }
  const statusCode = statuses[index % statuses.length] ?? 200
  if (index % 3 === 0) {
    const error = { code: "model_not_found", message: "No such model.", param: "model" }
    yield* metering.refuse({ ...common, modelId: null, model: null, statusCode: 404, latencyMs: 1, error })
    return { id, at, status: 404, model: null, key: owner.keyId }
  }
  const modelId = index % 2 === 0 ? modelA : modelB
  const start = { ...common, modelId, model: "tenant/tiny", revisionId }
  yield* beginRequest(metering, start)
  yield* metering.end({
    ...start,
    statusCode,
    usage,
    ttftMs: 1.5,
    latencyMs: 20.25,
    finishReason: "stop",
    error: null,
    note: null,
    receipt: { prices: zeroPrices, hfRevision: "c0ffee", engineVersion: "reference-0.1.0" }
  })
  return { id, at, status: statusCode, model: modelId, key: owner.keyId }
})

const classOf = (status: number) => (status < 400 ? "success" : status < 500 ? "client_error" : "server_error")

layer(layerStage(), { excludeTestServices: true })("lists over HTTP", (it) => {
  it.effect("return every row once, newest first, for every filter, with ties in time and rows that arrive during paging", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const tenant = yield* makeTenant()
      const second = yield* tenant.withKey(["requests:read"])
      const stranger = yield* makeTenant()
      const now = yield* Clock.currentTimeMillis
      const begin = now - 10_000
      const rows: Array<Effect.Success<ReturnType<typeof end>>> = []
      // Many rows share a millisecond.
      for (let index = 0; index < 60; index++) {
        rows.push(yield* end({ orgId: tenant.orgId, keyId: index % 4 === 0 ? second.keyId : tenant.keyId }, begin + Math.floor(index / 7), index))
        if (index % 10 === 0) yield* end(stranger, begin + Math.floor(index / 7), index)
      }
      const newestFirst = (given: typeof rows) => [...given].sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
      const filters: ReadonlyArray<readonly [query: string, keeps: (row: (typeof rows)[number]) => boolean]> = [
        ["", () => true],
        ["&status=success", (row) => classOf(row.status) === "success"],
        ["&status=client_error", (row) => classOf(row.status) === "client_error"],
        ["&status=server_error", (row) => classOf(row.status) === "server_error"],
        [`&model_id=${modelA}`, (row) => row.model === modelA],
        [`&api_key_id=${second.keyId}`, (row) => row.key === second.keyId],
        [`&from=${begin + 2}&to=${begin + 5}`, (row) => row.at >= begin + 2 && row.at < begin + 5],
        [
          `&status=success&model_id=${modelB}&api_key_id=${tenant.keyId}&from=${begin}`,
          (row) => row.status < 400 && row.model === modelB && row.key === tenant.keyId
        ]
      ]
      for (const [query, keeps] of filters) {
        const ids: Array<string> = []
        const expected = newestFirst(rows).filter(keeps)
        const arrived: typeof rows = []
        let cursor: string | null = ""
        for (let page = 0; cursor !== null; page++) {
          const limit = 7 + page
          const answer = yield* call("GET", `/v1/requests?limit=${limit}${query}${cursor === "" ? "" : `&cursor=${cursor}`}`, { key: tenant.key })
          assert.strictEqual(answer.status, 200, answer.text)
          const { data, next_cursor } = pageOf(answer)
          assert.isAtMost(data.length, limit)
          ids.push(...data.map(({ id }) => id))
          cursor = next_cursor
          // This row arrives after the first page was read, so no later page contains it.
          if (page === 0) arrived.push(yield* end(tenant, now, page))
        }
        assert.deepStrictEqual(
          ids,
          expected.map(({ id }) => id),
          query
        )
        rows.push(...arrived)
      }
      const org = yield* call("GET", "/v1/org/requests?limit=200&status=server_error", { key: tenant.key })
      assert.deepStrictEqual(jsonOf(org), jsonOf(yield* call("GET", "/v1/requests?limit=200&status=server_error", { key: tenant.key })))
    })
  )

  it.effect("refuse a cursor of another list, other filters or another organization, and a changed cursor", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const tenant = yield* makeTenant()
      const stranger = yield* makeTenant()
      const now = yield* Clock.currentTimeMillis
      for (const owner of [tenant, stranger]) for (let index = 1; index < 4; index++) yield* end(owner, now - index, index)
      const { next_cursor: cursor } = pageOf(yield* call("GET", "/v1/requests?limit=1", { key: tenant.key }))
      assert.isString(cursor)
      const refused = Effect.fnUntraced(function* (path: string, key: string) {
        const answer = yield* call("GET", path, { key })
        assert.strictEqual(answer.status, 400, path)
        assert.deepNestedInclude(jsonOf(answer), { "error.code": "invalid_cursor", "error.param": "cursor", "error.type": "invalid_request_error" })
      })
      yield* refused(`/v1/requests?cursor=${cursor}`, stranger.key)
      yield* refused(`/v1/org/requests?cursor=${cursor}`, tenant.key)
      yield* refused(`/v1/deployments?cursor=${cursor}`, tenant.key)
      yield* refused(`/v1/requests?status=success&cursor=${cursor}`, tenant.key)
      yield* refused(`/v1/requests?from=0&cursor=${cursor}`, tenant.key)
      yield* refused("/v1/requests?cursor=abc", tenant.key)
      yield* refused(`/v1/requests?cursor=${cursor}=`, tenant.key)
      for (let index = 0; index < (cursor ?? "").length; index += 3) {
        const character = cursor?.[index] === "A" ? "B" : "A"
        yield* refused(`/v1/requests?cursor=${cursor?.slice(0, index)}${character}${cursor?.slice(index + 1)}`, tenant.key)
      }
      for (const limit of ["", "&limit=1", "&limit=200"]) {
        assert.strictEqual((yield* call("GET", `/v1/requests?cursor=${cursor}${limit}`, { key: tenant.key })).status, 200)
      }
    })
  )

  it.effect("omit running requests, which can be read by ID", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, keyId, orgId } = yield* makeTenant()
      const id = yield* (yield* Ids).make(RequestId)
      yield* beginRequest(yield* Metering, { id, orgId, keyId, endpoint: "/v1/completions", streamed: true, modelId: modelA, model: "tenant/tiny", revisionId })
      assert.deepInclude(jsonOf(yield* call("GET", "/v1/requests", { key })), { data: [] })
      const running = yield* call("GET", `/v1/requests/${id}`, { key })
      assert.deepInclude(jsonOf(running), { id, state: "running", status_code: null, cost_micros: null, receipt_url: null })
      assert.strictEqual((yield* call("GET", `/v1/receipts/${id}`, { key })).status, 404)
    })
  )

  it.effect("a request links to its receipt, in both families and with either scope", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const tenant = yield* makeTenant()
      const { id } = yield* end(tenant, yield* Clock.currentTimeMillis, 1)
      const record = yield* call("GET", `/v1/requests/${id}`, { key: tenant.key })
      assert.deepInclude(jsonOf(record), { id, state: "completed", status_code: 200, input_tokens: 3, cost_micros: "0", receipt_url: `/v1/receipts/${id}` })
      assert.strictEqual((yield* call("GET", `/v1/org/requests/${id}`, { key: tenant.key })).text, record.text)
      const receipt = yield* call("GET", `/v1/receipts/${id}`, { key: tenant.key })
      assert.deepInclude(jsonOf(receipt), {
        request_id: id,
        hf_revision: "c0ffee",
        engine_version: "reference-0.1.0",
        cost_micros: "0",
        usage,
        prices: zeroPrices
      })
      for (const scope of ["requests:read", "inference:write"] as const) {
        const { secret } = yield* tenant.withKey([scope])
        for (const family of ["/v1", "/v1/org"]) assert.strictEqual((yield* call("GET", `${family}/receipts/${id}`, { key: secret })).text, receipt.text)
      }
    })
  )

  it.effect("another organization's request, a nonexistent ID and a malformed ID return the same bytes", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const owner = yield* makeTenant()
      const other = yield* makeTenant()
      const { id } = yield* end(owner, yield* Clock.currentTimeMillis, 1)
      const ids = [id, "req_01890000000000000000000000", "req_7zzzzzzzzzzzzzzzzzzzzzzzzz", "req_00000000000000000000000000", "x", "%00", "a".repeat(5000)]
      for (const path of ["/v1/requests", "/v1/receipts", "/v1/org/requests", "/v1/org/receipts"]) {
        const texts = yield* Effect.forEach(ids, (given) =>
          Effect.map(call("GET", `${path}/${given}`, { key: other.key }), (answer) => {
            assert.strictEqual(answer.status, 404, given)
            return answer.text.replace(/req_[0-9a-z]{26}/, "req_")
          })
        )
        assert.strictEqual(new Set(texts).size, 1)
      }
    })
  )

  it.effect("a revoked key can no longer read", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const tenant = yield* makeTenant()
      assert.strictEqual((yield* call("GET", "/v1/requests", { key: tenant.key })).status, 200)
      yield* (yield* ApiKeys).revoke(tenant.orgId, tenant.keyId)
      // The revocation arrives by NOTIFY. Wait for it.
      yield* call("GET", "/v1/requests", { key: tenant.key }).pipe(Effect.repeat({ until: ({ status }) => status === 401 }), Effect.timeout("5 seconds"))
    })
  )
})
