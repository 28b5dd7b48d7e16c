import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answersIn, exchange } from "./rawSocket.ts"
import { layerStage, makeTenant, Stage } from "./stage.ts"

const head = (key: string) =>
  `POST /v1/deployments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nidempotency-key: costly\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`

/** `text` as an HTTP body in chunks of this many bytes. */
const inChunks = (text: string, bytes: number) =>
  `${Array.from({ length: Math.ceil(text.length / bytes) }, (_, index) => text.slice(index * bytes, (index + 1) * bytes))
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    .join("")}0\r\n\r\n`

/** Not JSON. */
const text = "word ".repeat(8_000)

layer(layerStage(), { excludeTestServices: true })("a request body", (it) => {
  it.effect("in chunks of one byte is refused, and its connection is closed", () =>
    Effect.gen(function* () {
      const { call, port } = yield* Stage
      const { key } = yield* makeTenant()
      const answers = answersIn(yield* exchange(port, head(key) + inChunks(text, 1)))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [400]
      )
      assert.include(answers[0]?.text ?? "", '"code":"invalid_body"')
      assert.include(answers[0]?.text ?? "", "too many small chunks")
      assert.strictEqual((yield* call("GET", "/v1/deployments", { key })).status, 200)
    })
  )

  it.effect("in chunks of one byte without a valid key is not read, and its connection is closed", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const answers = answersIn(yield* exchange(port, head("seatrial_wrong") + inChunks(text, 1)))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [401]
      )
    })
  )

  it.effect("that begins in small chunks while it is read is refused as well", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const { key } = yield* makeTenant()
      const received = yield* exchange(port, (socket) => {
        socket.write(head(key) + inChunks("a".repeat(400), 1).slice(0, -5))
        const timer = setInterval(() => socket.write(inChunks("a".repeat(40), 1).slice(0, -5)), 10)
        socket.once("close", () => clearInterval(timer))
      })
      assert.include(answersIn(received)[0]?.text ?? "", "too many small chunks")
    })
  )

  it.effect("in chunks of 80 bytes is read", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const { key } = yield* makeTenant()
      const received = yield* exchange(port, (socket) => {
        socket.write(head(key) + inChunks(text, 80))
        socket.once("data", () => socket.end())
      })
      assert.include(answersIn(received)[0]?.text ?? "", "The body is not valid JSON.")
    })
  )

  const many = (count: number, part: (index: number) => string) => Array.from({ length: count }, (_, index) => part(index)).join(",")

  for (const [what, body, message] of [
    ["a list of 20,000 numbers", `[${many(20_000, () => "0")}]`, "The body may have at most 5000 members and elements."],
    ["20,000 members", `{${many(20_000, (index) => `"${index}":0`)}}`, "The body may have at most 1000 members of objects."],
    ["20,000 lists", `[${many(20_000, () => "[]")}]`, "The body may have at most 1000 objects and lists."]
  ] as const) {
    it.effect(`with ${what} is refused before it is parsed`, () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { key } = yield* makeTenant()
        // It is not JSON either, but the scan comes first.
        const { status, text: answer } = yield* call("POST", "/v1/deployment-previews", { key, body: `${body}]` })
        assert.deepStrictEqual([status, answer.includes(message)], [400, true], answer)
      })
    )
  }
})
