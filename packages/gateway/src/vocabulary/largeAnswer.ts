import { isUtf8 } from "node:buffer"
import { type InferencePath, Usage } from "@seatrial/domain"
import { Schema } from "effect"
import type { Frame, ReadFrame, StreamOptions } from "../dialects/Dialect.ts"
import { dialects } from "../dialects/dialects.ts"
import { shortError } from "../engineErrorBody.ts"
import { type AnswerFormat, type ParsedAnswer, parseAnswer } from "../parseAnswer.ts"

/** What the process for large bodies does with what an engine wrote. */
export type LargeAnswerTask =
  /** Parses an answer that is not streamed. */
  | { readonly _tag: "ParseAnswer"; readonly format: AnswerFormat }
  /** Reads a frame of a stream. `state`: of the stream's reader before it. */
  | { readonly _tag: "ReadFrame"; readonly endpoint: InferencePath; readonly options: StreamOptions; readonly state: string }

const NullableText = Schema.NullOr(Schema.String)

/** A frame without its text, which has any length. */
const FrameHead = Schema.Union([
  Schema.TaggedStruct("Comment", {}),
  Schema.TaggedStruct("Broken", {}),
  Schema.TaggedStruct("Failed", { payload: Schema.String }),
  Schema.TaggedStruct("Done", { usage: NullableText, finishReason: NullableText }),
  Schema.TaggedStruct("Chunk", { hasText: Schema.Boolean, usage: NullableText, hasContent: Schema.Boolean, finishReason: NullableText })
])

/** The heads of the process's answers to these tasks. */
export const largeAnswerHeads = [
  /** The body of the message is that for the caller, unless it is the engine's own. */
  Schema.TaggedStruct("ParsedAnswer", {
    isEnginesOwn: Schema.Boolean,
    answer: Schema.Struct({
      usage: Schema.NullOr(Schema.Struct({ ...Usage.fields, clipped: Schema.optionalKey(Schema.Literal(true)) })),
      finished: Schema.Boolean,
      finishReason: NullableText
    })
  }),
  Schema.TaggedStruct("EngineError", { error: Schema.String }),
  /** The body of the message is the text of the frame, or the last frame if the stream is done. */
  Schema.TaggedStruct("ReadFrame", { frame: FrameHead, state: Schema.String })
] as const
type Head = (typeof largeAnswerHeads)[number]["Type"]
type HeadOf<Tag extends Head["_tag"]> = Extract<Head, { readonly _tag: Tag }>

interface LargeAnswer {
  readonly head: Head
  readonly body: Uint8Array
}

const noBody = new Uint8Array()

/** Parses an answer. Its body is sent back only if the caller gets another one than the engine wrote. */
const parseLargeAnswer = (format: AnswerFormat, bytes: Buffer): LargeAnswer => {
  const text = bytes.toString("utf8")
  const parsed = parseAnswer(format, text)
  if (parsed._tag === "Error") return { head: { _tag: "EngineError", error: shortError(parsed.error) }, body: noBody }
  const { answer, body } = parsed
  // Bytes that are not UTF-8 were replaced in the text.
  const isEnginesOwn = body === text && isUtf8(bytes)
  return { head: { _tag: "ParsedAnswer", isEnginesOwn, answer }, body: isEnginesOwn ? noBody : Buffer.from(body) }
}

/** The parsed answer of a process. `body`: the bytes of its message. `own`: the bytes of the engine. */
export const parsedAnswerOf = (head: HeadOf<"ParsedAnswer" | "EngineError">, body: Buffer, own: Buffer): ParsedAnswer =>
  head._tag === "EngineError" ? { _tag: "Error", error: head.error } : { _tag: "Answer", answer: head.answer, body: head.isEnginesOwn ? own : body }

/** Characters of the usage that are kept. A longer one is no usage of any engine. */
const maxUsage = 4_096

const shortUsage = (usage: string | null) => (usage === null || usage.length > maxUsage ? null : usage)

const headOf = (frame: Frame): HeadOf<"ReadFrame">["frame"] => {
  if (frame._tag === "Failed") return { _tag: "Failed", payload: shortError(frame.payload) }
  if (frame._tag === "Done") return { ...frame, usage: shortUsage(frame.usage) }
  if (frame._tag !== "Chunk") return frame
  const { text, usage, ...chunk } = frame
  return { ...chunk, hasText: text !== null, usage: shortUsage(usage) }
}

const readLargeFrame = ({ endpoint, options, state }: Extract<LargeAnswerTask, { readonly _tag: "ReadFrame" }>, bytes: Buffer): LargeAnswer => {
  const reader = dialects[endpoint].makeReader(options)
  reader.restore(state, null)
  const frame = reader.read(bytes.toString("latin1"))
  const text = frame._tag === "Chunk" ? (frame.text ?? "") : frame._tag === "Done" ? reader.ending() : ""
  return { head: { _tag: "ReadFrame", frame: headOf(frame), state: reader.state() }, body: Buffer.from(text, "latin1") }
}

/** The frame that a process read. `body`: the bytes of its message. */
export const readFrameOf = ({ frame, state }: HeadOf<"ReadFrame">, body: Buffer): ReadFrame => {
  const ending = frame._tag === "Done" ? body.toString("latin1") : null
  if (frame._tag !== "Chunk") return { frame, state, ending }
  const { hasText, ...chunk } = frame
  return { frame: { ...chunk, text: hasText ? body.toString("latin1") : null }, state, ending }
}

/** Does a task in the process for large bodies. */
export const answerOf = (task: LargeAnswerTask, bytes: Buffer): LargeAnswer =>
  task._tag === "ParseAnswer" ? parseLargeAnswer(task.format, bytes) : readLargeFrame(task, bytes)
