import { assert, layer } from "@effect/vitest"
import { CatalogModel, RequestId } from "@seatrial/domain"
import { ApiKeys, Requests } from "@seatrial/store"
import { withoutDatabase } from "@seatrial/store/testing"
import { Effect, Option, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { answers, chunk, done, type FakeEngine, finish, makeEngine, openStream, type Script, streams, wholeAnswer } from "../fakeEngine.ts"
import { startGateway } from "../gatewayProcess.ts"
import { layerStore, makeServed, Url } from "../serving.ts"
import { fetched, type ReceivedAnswer, send, soon } from "../stage.ts"

/** An engine with a health check. */
const healthy =
  (script: Script): Script =>
  (call) =>
    call.request.url === "/health" ? call.response.writeHead(200).end() : script(call)

const idOf = (received: ReceivedAnswer) => Schema.decodeUnknownSync(RequestId)(received.headers()["x-request-id"])

/** Waits until the gateway has reached the engine and routes to it. */
const untilRouted = Effect.fnUntraced(function* (address: string, key: string, model: string) {
  const ask = fetched(address, { key, body: { model, prompt: "a" }, path: "/v1/completions" })
  for (let received = yield* ask; received.status() !== 200; received = yield* ask) assert.include([404, 503], received.status())
})

const decodeModels = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) })))

const callsOf = ({ calls }: FakeEngine) => calls.filter(({ request }) => request.url !== "/health")

layer(layerStore, { excludeTestServices: true })("the gateway program on Postgres", (it) => {
  it.effect("routes to an endpoint once it has reached it, and a caller that has the end marker finds the record and the receipt", () =>
    Effect.gen(function* () {
      const requests = yield* Requests
      const keys = yield* ApiKeys
      const engine = yield* makeEngine(healthy(answers(wholeAnswer("a"))))
      const { keyId, model, orgId, secret: key } = yield* makeServed("served", engine.url)
      const { address, exited, signal } = yield* startGateway()
      yield* untilRouted(address, key, model)
      const chat = { model, messages: [{ role: "user", content: "hi" }] }

      engine.script = streams(["a", "b"])
      const streamed = yield* send(address, { key, body: { ...chat, stream: true } })
      yield* soon(() => streamed.text().endsWith(done))
      const record = Option.getOrThrow(yield* requests.find(orgId, idOf(streamed)))
      assert.deepInclude(record, {
        state: "completed",
        status_code: 200,
        input_tokens: 10,
        output_tokens: 2,
        finish_reason: "stop",
        streamed: true,
        model,
        api_key_id: keyId,
        endpoint: "/v1/chat/completions",
        error: null
      })
      assert.deepStrictEqual(Option.getOrThrow(yield* requests.findReceipt(orgId, idOf(streamed))).usage, {
        input_tokens: 10,
        output_tokens: 2,
        cache_read_tokens: null,
        cache_write_tokens: null
      })

      // Both vendors' clients encode the slash.
      const read = (path: string, token = key) =>
        Effect.map(fetched(address, { method: "GET", body: "", path, key: token }), (received) => [received.status(), received.text()] as const)
      const [status, list] = yield* read("/v1/models")
      const [listed] = decodeModels(list).data
      assert.deepStrictEqual([status, listed?.id, listed?.owned_by], [200, model, "served"])
      for (const name of [model, encodeURIComponent(model)]) {
        const [found, text] = yield* read(`/v1/models/${name}`)
        assert.deepStrictEqual<unknown>([found, JSON.parse(text)], [200, JSON.parse(list).data[0]])
      }
      for (const name of ["served/other", "tiny", "%", "%00", "other/tiny"]) assert.strictEqual((yield* read(`/v1/models/${name}`))[0], 404, name)
      const foreign = yield* makeServed("foreign", engine.url)
      assert.deepStrictEqual(
        [(yield* read(`/v1/models/${model}`, foreign.secret))[0], decodeModels((yield* read("/v1/models", foreign.secret))[1]).data.length],
        [404, 1]
      )
      assert.strictEqual((yield* read("/v1/models", "wrong"))[0], 401)

      engine.script = answers("{}", 400)
      const turned = yield* fetched(address, { key, body: chat })
      const refusal = Option.getOrThrow(yield* requests.find(orgId, idOf(turned)))
      assert.deepStrictEqual([turned.status(), refusal.state, refusal.status_code, refusal.cost_micros, refusal.receipt_url], [400, "refused", 400, "0", null])

      const unknown = yield* fetched(address, { key, body: { ...chat, model: "served/other" } })
      assert.deepInclude(Option.getOrThrow(yield* requests.find(orgId, idOf(unknown))), { state: "refused", status_code: 404, model: null })
      const stranger = yield* fetched(address, { key: (yield* makeServed("stranger", engine.url)).secret, body: chat })
      assert.strictEqual(stranger.status(), 404)

      // Many concurrent requests. For a third of them the engine dies, and a third of the callers disconnect. There
      // must be one record per request, and each ends once.
      engine.script = (call) => {
        if (call.body.includes("live")) streams(["x"])(call)
        else openStream(call).write(chunk("y", 1), () => (call.body.includes("die") ? call.response.destroy() : undefined))
      }
      const crowd = yield* Effect.forEach(Array.from({ length: 30 }), (_, index) =>
        send(address, { key, body: { model, messages: [{ role: "user", content: ["live", "die", "leave"][index % 3] }], stream: true } })
      )
      const leavers = crowd.filter((_, index) => index % 3 === 2)
      yield* soon(() => crowd.every((received) => (leavers.includes(received) ? received.text().includes("y") : received.ended !== undefined)))
      for (const { request } of leavers) request.destroy()
      const recordsOf = Effect.forEach(crowd, (received) => requests.find(orgId, idOf(received)))
      let records = yield* recordsOf
      while (records.some((found) => Option.getOrThrow(found).state === "running")) records = yield* recordsOf
      const codes = records.map((found) => Option.getOrThrow(found).status_code)
      assert.deepStrictEqual(
        [200, 502, 499].map((code) => codes.filter((other) => other === code).length),
        [10, 10, 10]
      )

      // The gateway learns of a revocation a moment later; until then the engine must answer.
      engine.script = answers(wholeAnswer("a"))
      yield* keys.revoke(orgId, keyId)
      let late = yield* fetched(address, { key, body: chat })
      while (late.status() !== 401) late = yield* fetched(address, { key, body: chat })
      signal("SIGTERM")
      assert.strictEqual(yield* exited, 0)
    })
  )

  it.effect("that is killed during a stream leaves one record, which another gateway ends", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const requests = yield* Requests
      const engine = yield* makeEngine(healthy(answers(wholeAnswer("a"))))
      const { model, orgId, secret: key } = yield* makeServed("killed", engine.url)
      const first = yield* startGateway()
      yield* untilRouted(first.address, key, model)
      engine.script = (call) => openStream(call).write(chunk("a", 1))
      const received = yield* send(first.address, { key, body: { model, messages: [{ role: "user", content: "hi" }], stream: true } })
      yield* soon(() => received.text().includes('"content":"a"'))
      const find = Effect.map(requests.find(orgId, idOf(received)), Option.getOrThrow)
      assert.strictEqual((yield* find).state, "running")
      first.signal("SIGKILL")
      yield* first.exited
      yield* soon(() => received.ended === "cut" && callsOf(engine).at(-1)?.isCut() === true)
      // The sweep ends the request as if its lease had expired, so the test does not wait for the lease.
      yield* sql`UPDATE requests SET lease_until = lease_until - interval '1 minute' WHERE org_id = ${orgId} AND state = 'running'`
      yield* sql`UPDATE request_sweeps SET since = since - interval '1 minute'`
      yield* startGateway()
      while ((yield* find).state === "running") yield* Effect.yieldNow
      const record = yield* find
      assert.deepStrictEqual([record.state, record.status_code, record.error?.code], ["completed", 500, "gateway_lost"])
      const { items } = yield* requests.list(orgId, { limit: 100, after: null })
      assert.strictEqual(items.filter(({ id }) => id === record.id).length, 1)
      assert.isString(Option.getOrThrow(yield* requests.findReceipt(orgId, idOf(received))).note)
    })
  )

  it.effect("that lost the database for longer than a lease during a stream still ends the stream and its record normally", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const requests = yield* Requests
      const engine = yield* makeEngine(healthy(answers(wholeAnswer("a"))))
      const { model, orgId, secret: key } = yield* makeServed("outage", engine.url)
      const gateway = yield* startGateway()
      yield* untilRouted(gateway.address, key, model)
      engine.script = (call) => openStream(call).write(chunk("a", 1))
      const received = yield* send(gateway.address, { key, body: { model, messages: [{ role: "user", content: "hi" }], stream: true } })
      yield* soon(() => received.text().includes('"content":"a"'))
      const find = Effect.map(requests.find(orgId, idOf(received)), Option.getOrThrow)
      assert.strictEqual((yield* find).state, "running")
      yield* withoutDatabase(
        inject("postgres"),
        yield* Url,
        Effect.sync(() => callsOf(engine).at(-1)?.response.write(chunk("b", 2)))
      )
      // Simulates that an hour has passed by changing the stored times. The first statement finds a closed connection.
      const age = Effect.gen(function* () {
        yield* sql`UPDATE request_sweeps SET since = since - interval '1 hour', seen = seen - interval '1 hour'`
        yield* sql`UPDATE requests SET lease_until = lease_until - interval '1 hour' WHERE org_id = ${orgId} AND state = 'running'`
      }).pipe(sql.withTransaction)
      yield* Effect.retry(age, { times: 20 })
      const lives = sql`SELECT 1 FROM requests WHERE org_id = ${orgId} AND state = 'running' AND lease_until > now()`
      while ((yield* lives).length === 0) assert.strictEqual((yield* find).state, "running")
      callsOf(engine)
        .at(-1)
        ?.response.end(finish("stop") + done)
      yield* soon(() => received.ended === "end")
      assert.isTrue(received.text().endsWith(done))
      assert.deepStrictEqual([(yield* find).state, (yield* find).status_code, (yield* find).error], ["completed", 200, null])
      assert.strictEqual(Option.getOrThrow(yield* requests.findReceipt(orgId, idOf(received))).status_code, 200)
    })
  )

  it.effect("ends only the streams of a key that is revoked in another process", () =>
    Effect.gen(function* () {
      const requests = yield* Requests
      const keys = yield* ApiKeys
      const engine = yield* makeEngine(healthy(answers(wholeAnswer("a"))))
      const { model, orgId, secret: stays } = yield* makeServed("revoked", engine.url)
      const [first] = yield* keys.list(orgId)
      if (first === undefined) return assert.fail("no key")
      const leaked = yield* keys.create({ orgId, userId: first.userId, name: "leaked", scopes: ["inference:write"] })
      const { address } = yield* startGateway({ GATEWAY_REVOKED_SECONDS: "0.1" })
      yield* untilRouted(address, stays, model)
      engine.script = healthy((call) => openStream(call).write(chunk("a", 1)))
      const body = { model, messages: [{ role: "user", content: "hi" }], stream: true }
      const other = yield* send(address, { key: stays, body })
      const received = yield* send(address, { key: Redacted.value(leaked.secret), body })
      yield* soon(() => other.text().includes('"a"') && received.text().includes('"a"'))
      yield* keys.revoke(orgId, leaked.key.id)
      yield* soon(() => received.ended === "end")
      assert.include(received.text(), "api_key_ended")
      assert.deepInclude(Option.getOrThrow(yield* requests.find(orgId, idOf(received))), { status_code: 401, input_tokens: 10, output_tokens: 1 })
      assert.isUndefined(other.ended)
      other.request.destroy()
    })
  )
})
