import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, chunk, done, finish, makeEngine, opening, openStream, wholeAnswer } from "./fakeEngine.ts"
import { apiKey, chat, chatStream, makeStage, outcomes, soon } from "./stage.ts"

const head = (path: string, ...headers: ReadonlyArray<string>) => [`POST ${path} HTTP/1.1`, `authorization: Bearer ${apiKey}`, ...headers, "", ""].join("\r\n")
const json = "content-type: application/json"

const ask = (body: object, path = "/v1/chat/completions", ...headers: ReadonlyArray<string>) => {
  const text = JSON.stringify(body)
  return `${head(path, "host: x", json, `content-length: ${text.length}`, ...headers)}${text}`
}
const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

/** Sends bytes on a connection and returns the bytes that come back. */
const open = (address: string, sent: string | Buffer) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect(Number(new URL(address).port), "127.0.0.1")
      const connection = { socket, said: "", closed: false }
      socket.on("data", (bytes) => {
        connection.said += String(bytes)
      })
      socket.on("close", () => {
        connection.closed = true
      })
      socket.on("error", () => {})
      socket.write(sent)
      return connection
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

const answersIn = (said: string) =>
  said
    .split("HTTP/1.1 ")
    .slice(1)
    .map((answer) => {
      const [top = "", body = ""] = answer.split("\r\n\r\n")
      return { status: Number(top.slice(0, 3)), id: /x-request-id: (req_[0-9a-z]{26})/.exec(top)?.[1], top, body }
    })

describe("a malformed request gets an Error object, and its connection is closed", () => {
  for (const [what, sent, status, code] of [
    ["no HTTP", "nonsense\r\n\r\n", 400, "invalid_parameter"],
    ["TLS", Buffer.from("160301020001000001fc0303", "hex"), 400, "invalid_parameter"],
    ["no host", head("/v1/chat/completions", json, "content-length: 2"), 400, "invalid_parameter"],
    ["two hosts", head("/v1/chat/completions", "host: x", "host: y", json, "content-length: 2"), 400, "invalid_parameter"],
    ["two lengths", head("/v1/chat/completions", "host: x", json, "content-length: 2", "content-length: 3"), 400, "invalid_parameter"],
    ["a length and chunks", head("/v1/chat/completions", "host: x", json, "content-length: 2", "transfer-encoding: chunked"), 400, "invalid_parameter"],
    ["a malformed chunk", `${head("/v1/chat/completions", "host: x", json, "transfer-encoding: chunked")}zz\r\n`, 400, "invalid_parameter"],
    [
      "chunks by HTTP/1.0",
      `${head("/v1/chat/completions", json, "transfer-encoding: chunked", "connection: keep-alive").replace("1.1", "1.0")}${chunked(JSON.stringify(chat))}`,
      400,
      "invalid_parameter"
    ],
    ["a method that HTTP does not have", head("/v1/chat/completions", "host: x").replace("POST", "BREW"), 501, "method_not_allowed"],
    ["a tunnel", head("x:443", "host: x:443").replace("POST", "CONNECT"), 501, "method_not_allowed"],
    ["large headers", head("/v1/chat/completions", "host: x", `x-large: ${"a".repeat(20_000)}`), 431, "headers_too_large"]
  ] as const) {
    it.live(what, () =>
      Effect.gen(function* () {
        const { address } = yield* makeStage([])
        const connection = yield* open(address, sent)
        yield* soon(() => connection.closed)
        const [answer, ...more] = answersIn(connection.said)
        assert.deepStrictEqual([answer?.status, more.length], [status, 0])
        assert.match(String(answer?.top), /content-type: application\/json/)
        const { error } = JSON.parse(String(answer?.body))
        assert.deepStrictEqual([error.type, error.code, error.request_id], ["invalid_request_error", code, answer?.id])
        assert.match(error.message, status === 431 ? /too large/ : status === 501 ? /does not support this method/ : /not a well-formed HTTP request/)
      }).pipe(Effect.scoped)
    )
  }

  it.live("is answered in the format of the path and with the ID of the record if the body is malformed", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([])
      const connection = yield* open(address, `${head("/v1/messages", "host: x", json, "transfer-encoding: chunked")}zz\r\n`)
      yield* soon(() => connection.closed && world.recorded.length === 1)
      const [answer] = answersIn(connection.said)
      const { error, request_id, type } = JSON.parse(String(answer?.body))
      assert.deepStrictEqual([type, error.details.error_code, request_id], ["error", "invalid_parameter", answer?.id])
      assert.strictEqual(world.recorded[0]?.row.id, answer?.id)
    }).pipe(Effect.scoped)
  )
})

describe("malformed data after a request", () => {
  for (const [what, nonsense, status = 400] of [
    ["a method that HTTP does not have", "BREW / HTTP/1.1\r\nhost: x\r\n\r\n", 501],
    ["a tunnel", "CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n", 501],
    ["no request", "nonsense\r\n\r\n"],
    ["a request whose body is none", `${head("/v1/chat/completions", "host: x", json, "transfer-encoding: chunked")}ZZZ\r\nbad\r\n`]
  ] as const) {
    it.live(`is reported once, after the request's stream: ${what}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine((call) => openStream(call).write(opening + chunk("a")))
        const { address, world } = yield* makeStage([engine.url])
        const connection = yield* open(address, ask(chatStream))
        yield* soon(() => connection.said.includes(chunk("a")))
        connection.socket.write(nonsense)
        connection.socket.write("and more of it\r\n\r\n")
        // An answer on another connection proves that the bytes have arrived.
        const other = yield* open(address, "nonsense\r\n\r\n")
        yield* soon(() => other.closed)
        engine.calls[0]?.response.end(chunk("b") + finish("stop") + done)
        yield* soon(() => connection.closed)
        assert.deepStrictEqual(
          answersIn(connection.said).map(({ status }) => status),
          [200, status]
        )
        assert.match(connection.said, /\[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1\.1 (400|501) /)
        assert.deepStrictEqual(outcomes(world).slice(0, 2), ["Begin", "End 200"])
        assert.isFalse(
          outcomes(world)
            .slice(2)
            .some((outcome) => outcome.startsWith("End")),
          String(outcomes(world))
        )
      }).pipe(Effect.scoped)
    )
  }
})

describe("a request is accepted", () => {
  const text = JSON.stringify(chat)
  for (const [what, sent] of [
    ["with an expectation that HTTP does not have", ask(chat, "/v1/chat/completions", "expect: the-unexpected")],
    ["with an offer to upgrade, which the server ignores", ask(chat, "/v1/chat/completions", "connection: upgrade", "upgrade: websocket")],
    ["with an absolute URL, as proxies receive it", ask(chat, "http://elsewhere/v1/chat/completions?beta=true")],
    ["by HTTP/1.0, which requires no host", ask(chat).replace("HTTP/1.1", "HTTP/1.0").replace("host: x\r\n", "")],
    ["in chunks", head("/v1/chat/completions", "host: x", json, "transfer-encoding: Chunked") + chunked(text)],
    ["with the charset of JSON", ask(chat).replace(json, 'content-type: Application/JSON ; a=b; charset="UTF-8"')]
  ] as const) {
    it.live(what, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(answers(wholeAnswer("a")))
        const { address } = yield* makeStage([engine.url])
        const connection = yield* open(address, sent)
        yield* soon(() => connection.said.includes('"content":"a"'))
        assert.strictEqual(answersIn(connection.said)[0]?.status, 200)
      }).pipe(Effect.scoped)
    )
  }
})

describe("a body with an unsupported encoding is refused", () => {
  for (const [what, sent, param] of [
    ["in another charset", ask(chat).replace(json, `${json}; charset=utf-16`), "content-type"],
    ["compressed by transfer coding", head("/v1/chat/completions", "host: x", json, "transfer-encoding: gzip, chunked") + chunked("a"), "transfer-encoding"],
    ["compressed by content coding", ask(chat, "/v1/chat/completions", "content-encoding: gzip"), "content-encoding"]
  ] as const) {
    it.live(what, () =>
      Effect.gen(function* () {
        const { address, world } = yield* makeStage([])
        const connection = yield* open(address, sent)
        yield* soon(() => world.recorded.length === 1 && connection.said.includes("error"))
        assert.deepStrictEqual(outcomes(world), ["Refuse 415 unsupported_media_type"])
        const [refused] = world.recorded
        assert.strictEqual(refused?._tag === "Refuse" ? refused.row.error?.param : undefined, param)
      }).pipe(Effect.scoped)
    )
  }
})
