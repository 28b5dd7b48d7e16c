import type { ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { listen, makeServer } from "../src/listen.ts"
import { answers, makeEngine, streams, wholeAnswer } from "./fakeEngine.ts"
import { apiKey, chat, chatStream, fetched, makeStage, outcomes, soon } from "./stage.ts"

const ask = (body: object): string => {
  const text = JSON.stringify(body)
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

/** Sends all bytes at once on a connection and returns the bytes that come back. */
const sent = (address: string, text: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect(Number(new URL(address).port), "127.0.0.1")
      const connection = { socket, said: "" }
      socket.on("data", (bytes) => {
        connection.said += String(bytes)
      })
      socket.on("error", () => {})
      socket.write(text)
      return connection
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

describe("a pipelined request", () => {
  it.live("costs nothing if the caller disconnects: no engine gets it, and it takes no slot", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_KEY_CONCURRENCY: 2, GATEWAY_ABANDONED_SECONDS: 0.05 })
      const { socket } = yield* sent(address, ask({ ...chat, user: "first" }) + ask(chat) + ask(chatStream))
      yield* soon(() => engine.calls.length > 0)
      // The second answer proves that data sent with the first has arrived.
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      socket.destroy()
      yield* soon(() => engine.calls.every((call) => call.isCut()))
      yield* soon(() => outcomes(world).length === 2 * engine.calls.length)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      engine.script = answers(wholeAnswer("a"))
      const held = yield* Effect.all([fetched(address, { body: chat }), fetched(address, { body: chat })], { concurrency: 2 })
      assert.deepStrictEqual(
        held.map((received) => received.status()),
        [200, 200]
      )
      assert.strictEqual(engine.calls.length, 3)
    }).pipe(Effect.scoped)
  )

  it.live("is answered in its turn, with the slot that the previous request released", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => (call.body.includes('"stream":true') ? streams(["b"]) : answers(wholeAnswer("a")))(call))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_KEY_CONCURRENCY: 1 })
      const connection = yield* sent(address, ask(chat) + ask(chatStream) + ask(chat))
      yield* soon(() => world.recorded.length === 6)
      yield* soon(() => connection.said.split("HTTP/1.1 ").length === 4)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200", "Begin", "End 200", "Begin", "End 200"])
      assert.match(connection.said, /"content":"a".*\[DONE\].*"content":"a"/s)
    }).pipe(Effect.scoped)
  )

  it.live("has its own time limit, not the rest of the previous one", () =>
    Effect.gen(function* () {
      const begun: Array<{ readonly response: ServerResponse; readonly timeout: number | undefined }> = []
      let connection: Socket | undefined
      const server = makeServer().on("connection", (opened: Socket) => {
        connection = opened
      })
      const handler = (request: { readonly socket: { readonly timeout?: number | undefined } }, response: ServerResponse) =>
        void begun.push({ response, timeout: request.socket.timeout })
      const port = yield* listen(handler, { host: "127.0.0.1", port: 0, grace: 0, server })
      const { socket } = yield* sent(`http://127.0.0.1:${port}`, ask(chat) + ask(chat))
      yield* soon(() => connection?.bytesRead === 2 * ask(chat).length)
      assert.strictEqual(begun.length, 1)
      begun[0]?.response.setTimeout(60_000).end("a")
      yield* soon(() => begun.length === 2)
      assert.strictEqual(begun[1]?.timeout, 0)
      socket.destroy()
      yield* soon(() => begun[1]?.response.destroyed === true)
    }).pipe(Effect.scoped)
  )
})

describe("headers that Node answers by itself by default", () => {
  const tell = (headers: string) => ask(chat).replace("\r\n\r\n", `\r\n${headers}\r\n\r\n`)
  const statuses = (said: string) => [...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)

  for (const [what, headers, status] of [
    ["an unknown expectation is ignored", "expect: something", "200"],
    ["two keys are invalid", `authorization: Bearer ${apiKey}`, "401"],
    ["two content types are not supported", "content-type: text/plain", "415"]
  ] as const) {
    it.live(what, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(answers(wholeAnswer("a")))
        const { address } = yield* makeStage([engine.url])
        const connection = yield* sent(address, tell(headers))
        yield* soon(() => statuses(connection.said).length > 0)
        assert.deepStrictEqual(statuses(connection.said), [status])
        assert.include(connection.said, "x-request-id: req_")
      }).pipe(Effect.scoped)
    )
  }
})
