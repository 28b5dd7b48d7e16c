import type { ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { it as alone, assert, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { defaultClientTimeouts, makeNodeServer } from "../src/nodeServer.ts"
import { answersIn, exchange } from "./rawSocket.ts"
import { layerStage, makeTenant, Stage } from "./stage.ts"

/** Sends the beginning, and then single bytes for as long as the server accepts them. */
const dribble = (beginning: string) => (socket: Socket) => {
  socket.write(beginning)
  const timer = setInterval(() => socket.write("a"), 20)
  socket.once("close", () => clearInterval(timer))
}

const timeouts = { SERVER_HEADERS_TIMEOUT: "300 millis", SERVER_RECEIVE_TIMEOUT: "600 millis", SERVER_KEEP_ALIVE_TIMEOUT: "300 millis" }

layer(layerStage(timeouts), { excludeTestServices: true })("a slow client", (it) => {
  const head = (key: string) =>
    `POST /v1/deployments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nidempotency-key: slow\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n`

  it.effect("that sends its headers slowly is disconnected", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const [answer, ...more] = answersIn(yield* exchange(port, dribble("GET /healthz HTTP/1.1\r\nhost: x\r\nx: ")))
      assert.lengthOf(more, 0)
      assert.strictEqual(answer?.status, 408)
      assert.match(answer?.text ?? "", /"code":"request_timeout","request_id":"req_/)
    })
  )

  it.effect("that sends its body slowly is disconnected", () =>
    Effect.gen(function* () {
      const { call, port } = yield* Stage
      const { key } = yield* makeTenant()
      const [answer, ...more] = answersIn(yield* exchange(port, dribble(head(key))))
      assert.lengthOf(more, 0)
      assert.strictEqual(answer?.status, 408)
      assert.strictEqual((yield* call("GET", "/v1/deployments", { key })).status, 200)
    })
  )

  it.effect("whose body is refused unread gets one response and is disconnected", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const answers = answersIn(yield* exchange(port, dribble(head("seatrial_wrong"))))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [401]
      )
    })
  )

  it.effect("that does not send another request is disconnected", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const answers = answersIn(yield* exchange(port, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200]
      )
    })
  )

  it.effect("that sends nothing is disconnected", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const answers = answersIn(yield* exchange(port, () => {}))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [408]
      )
    })
  )
})

alone.live("a client that does not read its answer loses it", () =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => makeNodeServer({ ...defaultClientTimeouts, stalled: Duration.millis(200) })),
      (opened) => Effect.callback<void>((resume) => void opened.close(() => resume(Effect.void)).closeAllConnections())
    )
    const finished = yield* Effect.callback<boolean>((resume) => {
      // More than the buffers of both ends can hold.
      server.on("request", (_, response: ServerResponse) => {
        response.once("close", () => resume(Effect.succeed(response.writableFinished)))
        response.end(Buffer.alloc(64 * 2 ** 20))
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        if (address === null || typeof address === "string") return resume(Effect.die(new Error("no port")))
        const socket = connect(address.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"))
        socket.on("error", () => undefined)
        socket.pause()
      })
    })
    assert.isFalse(finished)
  }).pipe(Effect.scoped, Effect.timeout("20 seconds"))
)
