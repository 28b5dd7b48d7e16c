import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { apiKey, chat, makeStage, soon } from "./stage.ts"

const head = (key: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`

/** `text` as an HTTP body in chunks of `size` bytes. */
const inChunks = (text: string, bytes: number) =>
  `${Array.from({ length: Math.ceil(text.length / bytes) }, (_, index) => text.slice(index * bytes, (index + 1) * bytes))
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    .join("")}0\r\n\r\n`

/** The bytes that come back on a connection. */
const exchange = (address: string, sent: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect(Number(new URL(address).port), "127.0.0.1")
      const connection = { socket, received: "", isClosed: false }
      socket.on("data", (bytes) => {
        connection.received += String(bytes)
      })
      socket.on("close", () => {
        connection.isClosed = true
      })
      socket.on("error", () => {})
      socket.write(sent)
      return connection
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

/** A request body of 40,000 bytes. */
const question = JSON.stringify({ ...chat, messages: [{ role: "user", content: "word ".repeat(8_000) }] })

describe("a chunked body", () => {
  for (const [whose, key, status] of [
    ["a known key", apiKey, 400],
    ["an unknown key", "seatrial_unknown", 401]
  ] as const) {
    it.live(`in chunks of one byte gets ${status} with ${whose}, and its connection is closed`, () =>
      Effect.gen(function* () {
        const { address } = yield* makeStage([])
        const connection = yield* exchange(address, head(key) + inChunks(question, 1))
        yield* soon(() => connection.isClosed)
        assert.match(connection.received, new RegExp(`^HTTP/1.1 ${status} `))
        if (status === 400) assert.include(connection.received, "too many small chunks")
      }).pipe(Effect.scoped)
    )
  }

  it.live("in chunks of 80 bytes is read", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address } = yield* makeStage([engine.url])
      const connection = yield* exchange(address, head(apiKey) + inChunks(question, 80))
      yield* soon(() => connection.received.includes("\r\n\r\n"))
      assert.match(connection.received, /^HTTP\/1.1 200 /)
    }).pipe(Effect.scoped)
  )
})
