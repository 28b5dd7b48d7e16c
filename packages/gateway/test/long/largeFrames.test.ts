import { assert, describe, it } from "@effect/vitest"
import { dataFrame, eventFrame, type InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import type { Frame, StreamReader } from "../../src/dialects/Dialect.ts"
import { dialects } from "../../src/dialects/dialects.ts"
import { readEngineError } from "../../src/engineError.ts"
import { engineFailed } from "../../src/refusals.ts"
import { LargeBodyOptions } from "../../src/vocabulary/LargeBodies.ts"
import { readFrameOf } from "../../src/vocabulary/largeAnswer.ts"
import { decodeAnswer, decodeQuestion, encodeQuestion, type LargeBodyTask, makeLargeBodyReader } from "../../src/vocabulary/largeBody.ts"
import { makeCachingEngine } from "../cachingEngine.ts"
import { framesOf } from "../fakeAnswers.ts"
import { chunk, done, errorFrame, finish, makeEngine, opening, openStream, usage, usageFrame } from "../fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes } from "../stage.ts"

const options = { model: "acme/tiny", wantsUsage: true, choices: 2, cachedUnknown: true }
const texts = ["Hel", "lo, ", "wörld 🌊"]
const second = (frame: string) => frame.replace('"index":0', '"index":1')

/** Streams with everything that readers remember, change or refuse. */
const streams: ReadonlyArray<readonly [path: InferencePath, frames: ReadonlyArray<string>]> = [
  ["/v1/chat/completions", [opening, second(chunk("a", 1)), chunk("b", 2), finish("length"), second(finish("repetition")), usageFrame(3), done]],
  ["/v1/chat/completions", [chunk("a"), ": comment\n\n", second(opening), chunk("b", 7), finish("abort")]],
  ["/v1/chat/completions", [opening, errorFrame(503)]],
  [
    "/v1/chat/completions",
    [chunk("a").replace('"content"', '"reasoning_content"'), dataFrame({ choices: [], usage: { ...usage(9, 1), prompt_tokens_details: {} } })]
  ],
  ["/v1/chat/completions", ["data: {\n\n", done]],
  ["/v1/completions", [...framesOf("/v1/completions", texts)]],
  ["/v1/responses", framesOf("/v1/responses", texts)],
  ["/v1/responses", [...framesOf("/v1/responses", texts).slice(0, 5), eventFrame("response.failed", { response: { error: { message: "m", code: 429 } } })]],
  ["/v1/responses", [...framesOf("/v1/responses", texts).slice(0, -1), eventFrame("response.completed", { response: { status: "in_progress" } })]],
  ["/v1/responses", [eventFrame("error", { error: { message: "m" } }), "event: ping\n\n"]],
  ["/v1/messages", framesOf("/v1/messages", texts)],
  ["/v1/messages", [...framesOf("/v1/messages", texts).slice(0, 3), eventFrame("message_delta", { delta: { stop_reason: "paused" } })]],
  ["/v1/messages", [eventFrame("ping"), eventFrame("error", { error: { message: "m", code: 400 } }), eventFrame("message_stop")]]
]

/** Reads a frame as the process for large bodies does, and restores the reader. */
const readElsewhere = (path: InferencePath, reader: StreamReader, frame: string) => {
  const task: LargeBodyTask = { _tag: "ReadFrame", endpoint: path, options, state: reader.state() }
  const answer = makeLargeBodyReader()(decodeQuestion(encodeQuestion({ task, isHeld: false })), Buffer.from(frame, "latin1"))
  const head = decodeAnswer(answer.head)
  if (head._tag !== "ReadFrame") throw new Error(head._tag)
  const read = readFrameOf(head, Buffer.from(answer.body))
  reader.restore(read.state, read.ending)
  return read.frame
}

/** A frame with the error that its payload means. Another process returns only the members of an error that matter. */
const meaning = (endpoint: InferencePath, frame: Frame) => {
  if (frame._tag !== "Failed") return frame
  const { code, message, param } = readEngineError(frame.payload, 200, { endpoint, maxModelLen: 8 })
  return { code, message, param }
}

/** What a reader shows after a frame. */
const shown = (reader: StreamReader) => [reader.finished, reader.ending(), reader.failure(engineFailed, "req_1").replace(/"created_at":\d+/g, "")]

describe("a frame of more than 64 KiB", () => {
  it("is read by another process as the stream's own reader reads it, whatever came before it", () => {
    for (const [path, frames] of streams) {
      const latin1 = frames.map((frame) => Buffer.from(frame).toString("latin1"))
      // Each frame alone is large, and all of them are.
      for (const large of [...latin1.keys(), -1]) {
        const own = dialects[path].makeReader(options)
        const other = dialects[path].makeReader(options)
        for (const [index, frame] of latin1.entries()) {
          const expected = own.read(frame)
          const read = large === index || large === -1 ? readElsewhere(path, other, frame) : other.read(frame)
          assert.deepStrictEqual(meaning(path, read), meaning(path, expected), frame)
          assert.deepStrictEqual(shown(other), shown(own), frame)
        }
      }
    }
  })

  it("gives the gateway no more than 64 KiB to parse, whatever it contains", () => {
    const long = "\u0000".repeat(1_000_000)
    const response = { id: "resp_1", status: "in_progress", instructions: long }
    const frames: ReadonlyArray<readonly [InferencePath, string]> = [
      ["/v1/chat/completions", chunk(long, 1)],
      ["/v1/chat/completions", dataFrame({ choices: [], usage: { ...usage(1, 1), more: long } })],
      ["/v1/chat/completions", dataFrame({ error: { message: long, code: long } })],
      ["/v1/responses", eventFrame("response.created", { response })],
      ["/v1/responses", eventFrame("response.completed", { response: { ...response, status: "completed" } })],
      ["/v1/messages", eventFrame("message_start", { message: { content: long } })]
    ]
    for (const [endpoint, frame] of frames) {
      const state = dialects[endpoint].makeReader(options).state()
      const { head } = makeLargeBodyReader()({ task: { _tag: "ReadFrame", endpoint, options, state }, isHeld: false }, Buffer.from(frame))
      assert.isAtMost(Buffer.byteLength(head), 64 * 1024)
      assert.strictEqual(decodeAnswer(head)._tag, "ReadFrame")
    }
  })

  it.live("arrives complete and in its order on each path, and its tokens are recorded", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      const bodies = {
        "/v1/chat/completions": chat,
        "/v1/completions": { model: "acme/tiny", prompt: "hi" },
        "/v1/responses": { model: "acme/tiny", input: "hi" },
        "/v1/messages": { ...chat, max_tokens: 8 }
      }
      for (const [path, body] of Object.entries(bodies)) {
        const frames = framesOf(path, ["Hel", "é🌊".repeat(30_000), "lo", "b".repeat(70_000), "end"])
        engine.script = (call) => openStream(call).end(frames.join(""))
        const received = yield* fetched(address, { path, body: { ...body, stream: true } })
        assert.isTrue(received.text() === frames.filter((frame) => frame !== usageFrame(5)).join(""), path)
        assert.deepStrictEqual([outcomes(world), endOf(world).usage.output_tokens, endOf(world).finishReason], [["Begin", "End 200"], 5, "stop"])
        world.recorded.splice(0)
      }
    })
  )

  it.live("uses its organization's memory until the caller has read it; one that does not fit ends the stream with 429 and is charged", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_BODIES_BYTES: 1_048_576 })
      const streams = (bytes: number) => {
        engine.script = (call) => openStream(call).end([opening, chunk("a"), chunk("b".repeat(bytes)), finish("stop"), usageFrame(2), done].join(""))
      }
      streams(600_000)
      const refused = yield* fetched(address, { body: chatStream })
      const { note, usage: recorded } = endOf(world)
      assert.deepStrictEqual([outcomes(world), recorded.input_tokens > 0], [["Begin", "End 429 org_concurrency_limited"], true])
      assert.include(note, "The gateway had no memory for a frame of the stream")
      assert.include(refused.text(), '"code":"org_concurrency_limited"')
      // Once a frame was read, its memory is free for the next one.
      world.recorded.splice(0)
      engine.script = (call) =>
        openStream(call).end([opening, chunk("b".repeat(300_000)), chunk("c".repeat(300_000)), finish("stop"), usageFrame(2), done].join(""))
      for (const _ of [1, 2]) assert.include((yield* fetched(address, { body: chatStream })).text(), "c".repeat(300_000))
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200", "Begin", "End 200"])
    })
  )

  it.live("is read in a separate process: if that ends twice, the stream fails and is charged, and a new process reads the next one", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const defaults = yield* LargeBodyOptions
      const program = new URL("../endingProgram.ts", import.meta.url)
      const { address, world } = yield* makeStage([engine.url]).pipe(Effect.provideService(LargeBodyOptions, { ...defaults, program }))
      const padding = " ".repeat(70_000)
      const body = { ...chatStream, messages: [{ role: "user", content: "one two three" }] }
      for (const [text, status] of [
        ["end always", 200],
        [`end always${padding}`, 503],
        [padding, 200]
      ] as const) {
        engine.script = (call) => openStream(call).end([opening, chunk("a"), chunk(text), finish("stop"), usageFrame(2), done].join(""))
        const received = yield* fetched(address, { body })
        const { note, statusCode, usage: recorded } = endOf(world)
        assert.deepStrictEqual([received.ended, statusCode], ["end", status])
        assert.strictEqual(received.text().includes('"finish_reason":"stop"'), status === 200)
        if (status === 503) {
          assert.deepStrictEqual([recorded.input_tokens, recorded.output_tokens], [6, 1])
          assert.include(note, "The process that reads large frames ended before the engine reported its usage")
          assert.include(received.text(), '"code":"unavailable"')
        }
        world.recorded.splice(0)
      }
    })
  )
})
