import { createHmac } from "node:crypto"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ReceiptDigests } from "../src/ReceiptDigests.ts"
import { Refusal } from "../src/refusals.ts"
import { chunk, makeEngine, openStream, streams, wholeAnswer } from "./fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, type ReceivedAnswer, send, soon } from "./stage.ts"

const digestRequest = { "seatrial-receipt-digest": "hmac-sha-256" }
const hmac = (salt: string, bytes: Buffer | string) => createHmac("sha256", Buffer.from(salt, "base64url")).update(bytes).digest("base64url")
const saltOf = (received: ReceivedAnswer) => String(received.headers()["seatrial-receipt-salt"])
const expected = (received: ReceivedAnswer, body: string) => ({
  alg: "hmac-sha-256" as const,
  request: hmac(saltOf(received), body),
  answer: hmac(saltOf(received), received.bytes)
})

describe("the digests of a receipt", () => {
  it.live("cover the exact bytes of the request body and of the answer, streamed or not, with a new salt each time", () =>
    Effect.gen(function* () {
      const salts = new Set<string>()
      for (const request of [chat, chatStream]) {
        const engine = yield* makeEngine(request === chat ? ({ response }) => response.end(wholeAnswer("wörld 🌊")) : streams(["Hel", "wörld 🌊"]))
        const { address, world } = yield* makeStage([engine.url])
        // Bytes that no serializer would write for this value.
        const body = ` ${JSON.stringify({ ...request, messages: [{ role: "user", content: "grüß 🌊" }] }, null, 3)}\n`
        const received = yield* fetched(address, { body, headers: digestRequest })
        assert.deepStrictEqual([received.status(), received.ended], [200, "end"])
        assert.include(received.text(), "wörld 🌊")
        assert.deepStrictEqual(endOf(world).receipt.digests, expected(received, body))
        assert.match(saltOf(received), /^[\w-]{22}$/)
        assert.notInclude(
          JSON.stringify(world.recorded, (_, value) => (typeof value === "bigint" ? String(value) : value)),
          saltOf(received)
        )
        salts.add(saltOf(received))
      }
      assert.strictEqual(salts.size, 2)
    })
  )

  it.effect("cover a complete body that is hashed in slices", () =>
    Effect.gen(function* () {
      for (const length of [0, 1, 262_144, 262_145, 800_001]) {
        const response = new ServerResponse(new IncomingMessage(new Socket()))
        const digests = ReceiptDigests.open(digestRequest, response)
        if (digests instanceof Refusal) return yield* digests
        const body = Buffer.alloc(length, "abc")
        yield* digests.hashRequest(body)
        assert.strictEqual(digests.digests(false).request, hmac(String(response.getHeader("seatrial-receipt-salt")), body))
      }
    })
  )

  it.live("cover heartbeats and the error that ends an answer", () =>
    Effect.gen(function* () {
      const silent = yield* makeEngine((call) => void setTimeout(() => streams(["a"])(call), 150))
      const quiet = yield* makeStage([silent.url], { GATEWAY_HEARTBEAT_SECONDS: 0.04 })
      const beating = yield* fetched(quiet.address, { headers: digestRequest })
      assert.match(beating.text(), /^:/)
      assert.deepStrictEqual(endOf(quiet.world).receipt.digests, expected(beating, JSON.stringify(chatStream)))

      const dying = yield* makeEngine((call) => openStream(call).write(chunk("a"), () => call.response.destroy()))
      for (const request of [chat, chatStream]) {
        const { address, world } = yield* makeStage([dying.url])
        const received = yield* fetched(address, { body: request, headers: digestRequest })
        assert.match(received.text(), /engine_failed/)
        assert.deepStrictEqual(endOf(world).receipt.digests, expected(received, JSON.stringify(request)))
      }
    })
  )

  it.live("use the caller's salt, which must be 16 bytes in canonical base64url", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([engine.url])
      const salt = Buffer.alloc(16, 0xfb).toString("base64url")
      const received = yield* fetched(address, { headers: { ...digestRequest, "seatrial-receipt-salt": salt } })
      assert.strictEqual(saltOf(received), salt)
      assert.deepStrictEqual(endOf(world).receipt.digests, expected(received, JSON.stringify(chatStream)))
      const wrong: ReadonlyArray<readonly [param: string, headers: Readonly<Record<string, string>>]> = [
        ["seatrial-receipt-digest", { "seatrial-receipt-digest": "md5" }],
        ["seatrial-receipt-salt", { ...digestRequest, "seatrial-receipt-salt": salt.slice(1) }],
        ["seatrial-receipt-salt", { ...digestRequest, "seatrial-receipt-salt": `${salt}A` }],
        ["seatrial-receipt-salt", { ...digestRequest, "seatrial-receipt-salt": Buffer.alloc(16, 0xfb).toString("base64") }],
        ["seatrial-receipt-salt", { ...digestRequest, "seatrial-receipt-salt": `${salt.slice(0, -1)}x` }]
      ]
      for (const [param, headers] of wrong) {
        const refused = yield* fetched(address, { headers })
        assert.strictEqual(refused.status(), 400)
        assert.deepInclude(JSON.parse(refused.text()).error, { code: "invalid_parameter", param })
      }
      assert.lengthOf(engine.calls, 1)
    })
  )

  it.live("do not cover an answer whose caller disconnected, and exist only on request", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* send(address, { headers: digestRequest })
      yield* soon(() => received.text().includes("data:"))
      const salt = saltOf(received)
      received.request.destroy()
      yield* soon(() => outcomes(world).length === 2)
      assert.deepStrictEqual(endOf(world).receipt.digests, { alg: "hmac-sha-256", request: hmac(salt, JSON.stringify(chatStream)) })

      const plainEngine = yield* makeEngine(streams(["a"]))
      const plain = yield* makeStage([plainEngine.url])
      const without = yield* fetched(plain.address, { headers: { "seatrial-receipt-salt": salt } })
      assert.deepStrictEqual([endOf(plain.world).receipt.digests, without.headers()["seatrial-receipt-salt"]], [null, undefined])
    })
  )
})
