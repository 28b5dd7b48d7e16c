import { CompletionChunk, CompletionFailure, streamEnd } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { Sse } from "effect/encoding"

/** What one event of a streamed chat contains. */
export type ChatStreamEvent =
  | { readonly _tag: "Text"; readonly text: string }
  /** The gateway reported an error and ends the stream. */
  | { readonly _tag: "Failed"; readonly message: string }
  /** The event is not part of a chat. */
  | { readonly _tag: "Unreadable" }
  /** The end of a complete stream. */
  | { readonly _tag: "Ended" }

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Union([CompletionFailure, CompletionChunk])))

const readEvent = (data: string): ChatStreamEvent => {
  if (data === streamEnd) return { _tag: "Ended" }
  const event = Option.getOrNull(decodeEvent(data))
  if (event === null) return { _tag: "Unreadable" }
  if ("error" in event) return { _tag: "Failed", message: event.error.message }
  return { _tag: "Text", text: event.choices[0]?.delta?.content ?? "" }
}

/** Reads the body of a streamed chat, event by event as its bytes arrive. */
export async function* readChatStream(body: AsyncIterable<Uint8Array>): AsyncGenerator<ChatStreamEvent> {
  let events: Array<ChatStreamEvent> = []
  const parser = Sse.makeParser((event) => {
    if (event._tag === "Event") events.push(readEvent(event.data))
  })
  const decoder = new TextDecoder()
  for await (const bytes of body) {
    const tooLarge = parser.feed(decoder.decode(bytes, { stream: true }))
    yield* events
    events = []
    if (tooLarge !== undefined) yield { _tag: "Unreadable" }
  }
}
