import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { vi } from "vitest"
import { messages } from "../src/dialects/messages.ts"
import { chat } from "../src/dialects/openAi.ts"
import { FrameSplitter } from "../src/FrameSplitter.ts"
import { failed } from "../src/Outcome.ts"
import { Progress } from "../src/Progress.ts"
import { clientClosed } from "../src/refusals.ts"
import { chunk, done, finish, opening, streamOf, usageFrame } from "./fakeEngine.ts"

const split = (pieces: ReadonlyArray<Buffer>): ReadonlyArray<string> => {
  const splitter = new FrameSplitter()
  return pieces.flatMap((piece) => splitter.push(piece) ?? ["too large"])
}
/** Reads a frame from the middle of an answer. */
const readFrame = (frame: string, wantsUsage: boolean) => {
  const reader = chat.makeReader({ model: "acme/tiny", wantsUsage, choices: 1, cachedUnknown: false })
  reader.read(opening)
  return reader.read(frame)
}
const textOf = (frame: string, wantsUsage = false) => {
  const read = readFrame(frame, wantsUsage)
  return read._tag === "Chunk" ? read.text : read._tag
}
const latin1 = (text: string) => Buffer.from(text, "utf8").toString("latin1")
const utf8 = (text: string) => Buffer.from(text, "latin1").toString("utf8")

const Frames = Schema.Array(
  Schema.Struct({ content: Schema.String, completion: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1e6 }))) })
)

describe("frames", () => {
  const stream = Buffer.from(streamOf(["Hel", 'lo\n\n, "', "wörld 🌊"]))

  it("are the same wherever the bytes are split", () => {
    const complete = split([stream])
    assert.strictEqual(complete.length, 7)
    for (let at = 0; at <= stream.length; at++) assert.deepStrictEqual(split([stream.subarray(0, at), stream.subarray(at)]), complete)
    assert.deepStrictEqual(split(Array.from(stream, (byte) => Buffer.from([byte]))), complete)
  })

  it("with carriage returns are the same wherever they are split", () => {
    const complete = split([stream])
    const carriage = Buffer.from(stream.toString("utf8").replaceAll("\n", "\r\n"))
    for (let at = 0; at <= carriage.length; at++) assert.deepStrictEqual(split([carriage.subarray(0, at), carriage.subarray(at)]), complete)
  })

  it("that arrive in many chunks are examined and copied once for each byte, however large they are", () => {
    const frame = chunk("a".repeat(400_000))
    const bytes = Buffer.from(frame)
    const pieces = Array.from({ length: Math.ceil(bytes.length / 1_000) }, (_, index) => bytes.subarray(index * 1_000, (index + 1) * 1_000))
    const counted = [
      vi.spyOn(String.prototype, "includes"),
      vi.spyOn(String.prototype, "indexOf"),
      vi.spyOn(String.prototype, "replaceAll"),
      vi.spyOn(Array.prototype, "join")
    ]
    const frames = split(pieces)
    const examinedTexts = counted.flatMap(({ mock }) => [...mock.contexts])
    for (const spy of counted) spy.mockRestore()
    const examined = examinedTexts.reduce<number>((sum, text) => sum + String(text).length, 0)
    assert.deepStrictEqual(frames, [frame])
    assert.isBelow(examined, 6 * bytes.length)
  })

  it.prop("of any content pass unchanged except for their usage", [Frames], ([frames]) => {
    const sent = frames.map(({ completion, content }) => chunk(content, completion))
    const got = split([Buffer.from(sent.join(""))]).map((frame) => utf8(textOf(frame) ?? ""))
    assert.deepStrictEqual(
      got,
      frames.map(({ content }) => chunk(content))
    )
  })

  it.prop(
    "without their usage are the same as after parsing and serializing",
    [Schema.String, Schema.String, Schema.Int, Schema.Boolean],
    ([content, token, count, spaced]) => {
      const logprobs = { content: [{ token, logprob: -0.5, bytes: null, top_logprobs: [] }] }
      const choice = { index: 0, delta: { content }, logprobs, finish_reason: null }
      const rest = { id: "a", choices: [choice] }
      const complete = { ...rest, usage: { prompt_tokens: count, prompt_tokens_details: { cached_tokens: 1 } } }
      const frame = latin1(`data: ${spaced ? JSON.stringify(complete, null, 1).replaceAll("\n", "") : JSON.stringify(complete)}\n\n`)
      assert.strictEqual(utf8(textOf(frame) ?? ""), `data: ${JSON.stringify(rest)}\n\n`)
      assert.strictEqual(readFrame(frame, false)._tag === "Chunk" && textOf(frame, true), textOf(frame))
    }
  )

  it("that only look like usage, errors or endings are generated text", () => {
    for (const content of ['],"usage":null}', '"error":1', '"finish_reason":"abort"', "data: [DONE]\n\n", "\\", '"content":""']) {
      const frame = latin1(chunk(content))
      assert.deepStrictEqual(readFrame(frame, false), { _tag: "Chunk", text: frame, usage: null, hasContent: true, finishReason: null })
    }
  })

  it("without text have no content; finish reason and usage are read", () => {
    assert.deepInclude(readFrame(chunk(""), false), { _tag: "Chunk", hasContent: false })
    assert.deepInclude(readFrame(finish("length"), false), { text: finish("length"), finishReason: "length", hasContent: false })
    assert.deepInclude(readFrame(usageFrame(3), false), { text: null, usage: '{"prompt_tokens":10,"total_tokens":13,"completion_tokens":3}' })
    assert.deepInclude(readFrame(usageFrame(3), true), { text: usageFrame(3) })
    const reasoning = 'data: {"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":null}]}\n\n'
    const both = 'data: {"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"},"finish_reason":null}]}\n\n'
    assert.deepInclude(readFrame(reasoning, false), { text: both, hasContent: true })
  })

  it("lose comments, event names and IDs, which break some clients", () => {
    for (const ignored of [": ping\n\n", "\n\n", "retry: 10\n\n", "event: x\nid: 7\n\n"]) assert.strictEqual(textOf(ignored), "Comment")
    const data = chunk("a")
    assert.strictEqual(textOf(`: ping\nid: 7\nevent: message\n${data}`), data)
    assert.strictEqual(textOf(data.replace("data: ", "data:")), data)
    const reader = chat.makeReader({ model: "acme/tiny", wantsUsage: false, choices: 1, cachedUnknown: false })
    reader.read(finish("stop"))
    assert.strictEqual(reader.read(`\n${done}`)._tag, "Done")
    assert.strictEqual(textOf(done), "Broken")
    assert.strictEqual(textOf('data: {"choices":\ndata: []}\n\n', true), 'data: {"choices": []}\n\n')
  })

  it("that are not chunks are broken, and errors are errors", () => {
    for (const text of ["data: {\n\n", "data: 1\n\n", "data: {}\n\n", 'data: {"choices":1}\n\n']) assert.strictEqual(textOf(text), "Broken")
    for (const text of ['data: {"error":{"message":"m"}}\n\n', 'event: error\ndata: {"error":"m"}\n\n', finish("abort"), finish("error")]) {
      assert.strictEqual(textOf(text), "Failed")
    }
  })

  it("of several prompts do not report the cached tokens of only the first", () => {
    const reader = chat.makeReader({ model: "acme/tiny", wantsUsage: false, choices: 1, cachedUnknown: true })
    reader.read(opening)
    const frame =
      'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}\n\n'
    for (const text of [frame, frame.replace("data: ", "data:")]) {
      const read = reader.read(text)
      assert.deepStrictEqual(read._tag === "Chunk" && chat.usageOf(read.usage ?? ""), {
        input_tokens: 9,
        output_tokens: 1,
        cache_read_tokens: null,
        cache_write_tokens: null
      })
    }
  })

  it("that never end are rejected", () => {
    const splitter = new FrameSplitter(1_000)
    assert.deepStrictEqual(splitter.push(Buffer.from("x".repeat(1_000))), [])
    assert.strictEqual(splitter.push(Buffer.from("x")), null)
  })
})

describe("usage", () => {
  const usageOf = (json: string) => {
    const progress = new Progress(chat.usageOf)
    progress.storeUsage(json)
    return progress.reportedUsage
  }

  it("has four classes that add up to the engine's count", () => {
    const usageJson = '{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"created_cache_tokens":30}}'
    assert.deepStrictEqual(usageOf(usageJson), { input_tokens: 10, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: 30 })
    const bare = '{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}'
    assert.deepStrictEqual(usageOf(bare), { input_tokens: 100, output_tokens: 7, cache_read_tokens: null, cache_write_tokens: null })
    const more = '{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":80,"created_cache_tokens":30}}'
    assert.deepStrictEqual(usageOf(more), { input_tokens: 0, output_tokens: 7, cache_read_tokens: 80, cache_write_tokens: 20, clipped: true })
    const read = '{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":130,"created_cache_tokens":null}}'
    assert.deepStrictEqual(usageOf(read), { input_tokens: 0, output_tokens: 7, cache_read_tokens: 100, cache_write_tokens: null, clipped: true })
    assert.strictEqual(usageOf("null"), null)
    assert.strictEqual(usageOf('{"prompt_tokens":-1}'), null)
  })

  it("of an answer that broke off counts the delivered frames if the engine reported less", () => {
    const progress = new Progress(messages.usageOf)
    // At the start of a message. The output is reported at its end.
    progress.storeUsage('{"input_tokens":12,"output_tokens":0}')
    progress.contentFrames = 7
    assert.deepStrictEqual(progress.usage, { input_tokens: 12, output_tokens: 7, cache_read_tokens: null, cache_write_tokens: null })
    assert.strictEqual(
      failed(clientClosed, "The caller disconnected.", progress).note,
      "The caller disconnected. The output tokens are those that were delivered."
    )
    progress.storeUsage('{"input_tokens":12,"output_tokens":5}')
    progress.finishReason = "stop"
    assert.strictEqual(progress.usage.output_tokens, 5)
  })

  it("is kept if a later one is invalid", () => {
    const progress = new Progress(chat.usageOf)
    progress.storeUsage('{"prompt_tokens":3,"completion_tokens":1}')
    assert.strictEqual(progress.usage.input_tokens, 3)
    progress.storeUsage("null")
    assert.strictEqual(progress.usage.input_tokens, 3)
  })
})
