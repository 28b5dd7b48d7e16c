import { assert, it } from "@effect/vitest"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Effect, Stream } from "effect"
import { readChatStream } from "../src/index.ts"

const piece = (content: string) => dataFrame({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })

/** Reads a stream that arrives in pieces of this many bytes. */
const read = (stream: string, size: number) => {
  const bytes = new TextEncoder().encode(stream)
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size))
  return Stream.runCollect(Stream.fromAsyncIterable(readChatStream(Stream.toAsyncIterable(Stream.fromIterable(pieces))), (cause) => cause))
}

it.effect.each([1, 2, 7, 1_000])("a streamed chat reads the same in pieces of %i bytes", (size) =>
  Effect.gen(function* () {
    const events = yield* read(`: keep-alive\n\n${piece("Ahoy, ")}${piece("sn\u00f6")}${dataFrame({ choices: [] })}${dataFrame(streamEnd)}`, size)
    assert.deepStrictEqual(events, [{ _tag: "Text", text: "Ahoy, " }, { _tag: "Text", text: "sn\u00f6" }, { _tag: "Text", text: "" }, { _tag: "Ended" }])
  })
)

it.effect("an error in a stream is an event, and so is data of another kind", () =>
  Effect.gen(function* () {
    const failure = dataFrame({ error: { message: "The engine failed.", type: "api_error", code: "engine_failed", param: null, request_id: "req_1" } })
    assert.deepStrictEqual(yield* read(`${failure}${dataFrame({ hello: 1 })}${dataFrame("not JSON")}`, 50), [
      { _tag: "Failed", message: "The engine failed." },
      { _tag: "Unreadable" },
      { _tag: "Unreadable" }
    ])
  })
)
