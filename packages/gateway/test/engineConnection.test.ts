import { createServer as createHttpServer } from "node:http"
import { createServer, type Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Departure } from "../src/Departure.ts"
import { EngineClient } from "../src/EngineClient.ts"
import { GatewayConfig } from "../src/GatewayConfig.ts"
import { readWhole } from "../src/readWhole.ts"
import { chunk, opening } from "./fakeEngine.ts"
import { chatStream, makeStage, send, soon } from "./stage.ts"

/** A server that says, byte for byte, what it is told to, once for each request; it remembers which connection each came on. */
const makeSocketServer = (answer: (socket: Socket, request: string, count: number) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly requests: Array<string>; readonly sockets: Array<Socket>; readonly close: () => void }>((resume) => {
      const requests: Array<string> = []
      const sockets: Array<Socket> = []
      const server = createServer((socket) => {
        sockets.push(socket)
        socket.on("error", () => socket.destroy())
        socket.on("data", (bytes) => {
          requests.push(`${sockets.indexOf(socket)} ${bytes.toString("utf8")}`)
          answer(socket, bytes.toString("utf8"), requests.length)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const close = () => {
          server.close()
          for (const socket of sockets) socket.destroy()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`, requests, sockets, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const ok = (body: string, ...lines: ReadonlyArray<string>) => ["HTTP/1.1 200 OK", `content-length: ${Buffer.byteLength(body)}`, ...lines, "", body].join("\r\n")

const ask = Effect.fnUntraced(function* (url: string) {
  const { call } = yield* EngineClient
  const signal = new Departure()
  const answer = yield* call({
    url,
    path: "/v1/completions",
    method: "POST",
    body: () => '{"ö":1}',
    requestId: "r-1",
    traceparent: "00-a",
    timeout: 5_000,
    signal
  })
  const body = yield* readWhole(answer, 1_000_000, 5_000, signal)
  return typeof body === "string" ? body : body.toString("utf8")
})
const failure = (url: string) => Effect.map(Effect.flip(ask(url)), ({ reason }) => reason)

const provided = Effect.provide(EngineClient.layer.pipe(Layer.provide(GatewayConfig.layer)))

describe("a connection to an engine", () => {
  it.live("is used again, and a request is nothing but what an engine needs", () =>
    Effect.gen(function* () {
      const server = yield* makeSocketServer((socket, _, count) => socket.write(ok(`answer ${count}`)))
      assert.deepStrictEqual([yield* ask(server.url), yield* ask(server.url)], ["answer 1", "answer 2"])
      const { host } = new URL(server.url)
      const request = [
        "0 POST /v1/completions HTTP/1.1",
        `host: ${host}`,
        "accept: application/json, text/event-stream",
        "x-request-id: r-1",
        "traceparent: 00-a",
        "content-type: application/json",
        "content-length: 8",
        "",
        '{"ö":1}'
      ].join("\r\n")
      assert.deepStrictEqual(server.requests, [request, request])
    }).pipe(Effect.scoped, provided)
  )

  it.live("is not used again where the engine closes it, keeps it for a second only, or said more than it was asked", () =>
    Effect.gen(function* () {
      const answers = [ok("a", "connection: close"), ok("a", "keep-alive: timeout=1"), `${ok("a")}more`, "HTTP/1.1 200 OK\r\n\r\na", ok("a")]
      const server = yield* makeSocketServer((socket, _, count) => {
        const answer = answers[count - 1] ?? ""
        if (answer.includes("\r\n\r\na") && !answer.includes("length")) socket.end(answer)
        else socket.write(answer)
      })
      for (const _ of answers) assert.strictEqual(yield* ask(server.url), "a")
      assert.strictEqual(server.sockets.length, answers.length)
    }).pipe(Effect.scoped, provided)
  )

  it.live("that was kept and closed meanwhile is stale; one that breaks off within an answer is broken", () =>
    Effect.gen(function* () {
      const server = yield* makeSocketServer((socket, _, count) => {
        if (count === 1 || count === 3) socket.write(ok("a"))
        if (count === 2) socket.destroy()
        if (count === 4) socket.end("HTTP/1.1 200 OK\r\ncontent-")
        if (count === 5) socket.end()
      })
      assert.strictEqual(yield* ask(server.url), "a")
      assert.strictEqual(yield* failure(server.url), "stale")
      assert.strictEqual(yield* ask(server.url), "a")
      // Something of the answer had come on the kept connection.
      assert.strictEqual(yield* failure(server.url), "broken")
      // The connection was new.
      assert.strictEqual(yield* failure(server.url), "broken")
      assert.strictEqual(server.requests.length, 5)
    }).pipe(Effect.scoped, provided)
  )

  it.live("whose answer is no HTTP, or cut short, gives none and is closed", () =>
    Effect.gen(function* () {
      const answers = [
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab"
      ]
      const server = yield* makeSocketServer((socket, _, count) => socket.write(answers[count - 1] ?? ""))
      assert.strictEqual(yield* failure(server.url), "broken")
      assert.strictEqual(yield* failure(server.url), "broken")
      assert.strictEqual(yield* ask(server.url), "broken")
      yield* soon(() => server.sockets.every(({ closed }) => closed))
    }).pipe(Effect.scoped, provided)
  )

  it.live("takes a body larger than its buffers, and gives a larger one back", () =>
    Effect.gen(function* () {
      const large = "wörld ".repeat(200_000)
      const engine = yield* Effect.acquireRelease(
        Effect.sync(() => createHttpServer((request, response) => request.pipe(response)).listen(0, "127.0.0.1")),
        (server) => Effect.sync(() => server.close())
      )
      yield* soon(() => engine.listening)
      const address = engine.address()
      const { call } = yield* EngineClient
      const signal = new Departure()
      const url = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
      const answer = yield* call({ url, path: "/v1/completions", method: "POST", body: () => large, requestId: "r", timeout: 5_000, signal })
      const body = yield* readWhole(answer, 10_000_000, 5_000, signal)
      assert.isTrue(typeof body !== "string" && body.toString("utf8") === large)
    }).pipe(Effect.scoped, provided)
  )
})

describe("a stream under way", () => {
  it.live("keeps nothing of its request", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const collect: () => void = runInNewContext("gc")
      const count = 6
      let open = 0
      const engine = yield* Effect.acquireRelease(
        Effect.sync(() =>
          createHttpServer((request, response) => {
            if (request.method === "GET") return response.writeHead(404).end()
            return request.resume().once("end", () => {
              open++
              response.writeHead(200, { "content-type": "text/event-stream" }).write(opening + chunk("a"))
            })
          }).listen(0, "127.0.0.1")
        ),
        (server) => Effect.sync(() => server.close() && server.closeAllConnections())
      )
      yield* soon(() => engine.listening)
      const address = engine.address()
      const { address: gateway } = yield* makeStage([`http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`])
      const content = "a word ".repeat(100_000)
      const openOne = Effect.gen(function* () {
        const seen = yield* send(gateway, { body: { ...chatStream, messages: [{ role: "user", content }] } })
        yield* soon(() => seen.text().includes(chunk("a")))
        return seen
      })
      const kept = () => {
        collect()
        const { external, heapUsed } = process.memoryUsage()
        return external + heapUsed
      }
      const first = yield* openOne
      const before = kept()
      const streams = yield* Effect.replicateEffect(openOne, count - 1)
      // What was freed is counted a little later.
      yield* soon(() => kept() - before < ((count - 1) * content.length) / 10)
      for (const { request } of [first, ...streams]) request.destroy()
      assert.strictEqual(open, count)
    }).pipe(Effect.scoped)
  )
})
