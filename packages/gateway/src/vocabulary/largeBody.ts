import { isAscii } from "node:buffer"
import type { InferencePath } from "@seatrial/domain"
import { Schema } from "effect"
import { Refusal } from "../refusals.ts"
import { prefixLength, prefixOf } from "../routing/prefixOf.ts"
import type { Target } from "./Checking.ts"
import { type CheckedRequest, checkRequest } from "./checkRequest.ts"
import type { MessageFrame } from "./frames.ts"
import { answerOf, type LargeAnswerTask, largeAnswerHeads } from "./largeAnswer.ts"
import { type ParsedBody, parseBody } from "./parseBody.ts"

/** What the process does with a body. */
export type LargeBodyTask =
  /** Parses the body of a request and holds it for `Check`. */
  { readonly _tag: "Parse" } | { readonly _tag: "Check"; readonly endpoint: InferencePath; readonly target: Target } | LargeAnswerTask

/** The head of a question to the process that parses large bodies. */
export interface LargeBodyQuestion {
  readonly task: LargeBodyTask
  /** Whether the body is the one of the previous question. Then it is not sent and parsed again. */
  readonly isHeld: boolean
}

/** Serializes a question, including sets and maps. */
export const encodeQuestion = (question: LargeBodyQuestion): string =>
  JSON.stringify(question, (_, value: unknown) => (value instanceof Set ? { $set: [...value] } : value instanceof Map ? { $map: [...value] } : value))

/** Parses the output of `encodeQuestion`. */
export const decodeQuestion = (text: string): LargeBodyQuestion =>
  JSON.parse(text, (_, value) => (Array.isArray(value?.$set) ? new Set(value.$set) : Array.isArray(value?.$map) ? new Map(value.$map) : value))

/** Largest head of an answer that the gateway parses, bytes. Texts of any length are in the frame's body. */
const maxHeadBytes = 64 * 1024

const NullableText = Schema.NullOr(Schema.String)
const ErrorText = { message: Schema.String, param: NullableText }

/** The head of an answer. */
const Answer = Schema.Union([
  Schema.TaggedStruct("Parsed", { body: Schema.Struct({ model: Schema.String, members: Schema.Record(Schema.String, Schema.Unknown) }) }),
  /** The body of the frame is the engine's body, followed by the URLs of the images. */
  Schema.TaggedStruct("Checked", {
    isAscii: Schema.Boolean,
    engineBytes: Schema.Int,
    checked: Schema.Struct({
      model: Schema.String,
      stream: Schema.Boolean,
      wantsUsage: Schema.Boolean,
      choices: Schema.Int,
      outputLimit: Schema.NullOr(Schema.Finite),
      prompts: Schema.Int,
      givenTokens: Schema.NullOr(Schema.Int),
      cachedUnknown: Schema.Boolean,
      images: Schema.Array(Schema.Struct({ param: Schema.String, urlBytes: Schema.Int, placeholder: Schema.String }))
    })
  }),
  Schema.TaggedStruct("Refused", {
    status: Schema.Int,
    type: Schema.String,
    code: Schema.String,
    ...ErrorText,
    recorded: Schema.optionalKey(Schema.Struct(ErrorText))
  }),
  ...largeAnswerHeads
])
export type LargeBodyAnswer = typeof Answer.Type

const decodeHead = Schema.decodeUnknownSync(Schema.fromJsonString(Answer))

/** Parses the head of an answer. A larger head is a defect: parsing it would delay all other requests. */
export const decodeAnswer = (head: string): LargeBodyAnswer => {
  if (head.length > maxHeadBytes) throw new Error(`the head of an answer has ${head.length} characters`)
  return decodeHead(head)
}

const noBody = new Uint8Array()
const frameOf = (answer: LargeBodyAnswer, body: Uint8Array = noBody): MessageFrame => ({ head: JSON.stringify(answer), body })

const refused = ({ code, message, param, recorded, status, type }: Refusal) =>
  frameOf({ _tag: "Refused", status, type, code, message, param, ...(recorded === undefined ? {} : { recorded }) })

const checkedFrame = ({ endpoint: _, engineBody, imageCount: _images, images, withoutImages: _text, ...checked }: CheckedRequest): MessageFrame => {
  const engine = Buffer.from(engineBody)
  const urls = images.map(({ url }) => Buffer.from(url))
  const body = urls.length === 0 ? engine : Buffer.concat([engine, ...urls])
  const places = images.map(({ param, placeholder }, index) => ({ param, placeholder, urlBytes: urls[index]?.length ?? 0 }))
  return frameOf({ _tag: "Checked", isAscii: isAscii(body), engineBytes: engine.length, checked: { ...checked, images: places } }, body)
}

/** The request of a `Checked` answer. `body`: the bytes of its frame. */
export const checkedRequestOf = (
  endpoint: InferencePath,
  { checked, engineBytes, isAscii: isLatin1 }: Extract<LargeBodyAnswer, { readonly _tag: "Checked" }>,
  body: Buffer
): CheckedRequest => {
  let end = 0
  const textOf = (length: number) => {
    const start = end
    end += length
    return body.toString(isLatin1 ? "latin1" : "utf8", start, end)
  }
  const engineBody = textOf(engineBytes)
  const images = checked.images.map(({ param, placeholder, urlBytes }) => ({ param, placeholder, url: textOf(urlBytes) }))
  return { ...checked, images, endpoint, imageCount: 0, withoutImages: null, engineBody }
}

/** The members that the gateway needs before the check: `stream`, and those that routing uses. */
const summaryOf = ({ members, model }: ParsedBody): ParsedBody => {
  const { prompt_cache_key, stream } = members
  const beginning = typeof prompt_cache_key === "string" ? { prompt_cache_key: prompt_cache_key.slice(0, prefixLength) } : { prompt: prefixOf(members) }
  return { model, members: { ...(typeof stream === "boolean" ? { stream } : {}), ...beginning } }
}

/** Answers questions. It holds the last parsed body until the next question. */
export const makeLargeBodyReader = () => {
  let held: ParsedBody | null = null
  return ({ isHeld, task }: LargeBodyQuestion, bytes: Buffer): MessageFrame => {
    const last = held
    held = null
    if (task._tag === "ParseAnswer" || task._tag === "ReadFrame") {
      const { body, head } = answerOf(task, bytes)
      return frameOf(head, body)
    }
    const parsed = isHeld && last !== null ? last : parseBody(bytes)
    if (parsed instanceof Refusal) return refused(parsed)
    if (task._tag === "Parse") {
      held = parsed
      return frameOf({ _tag: "Parsed", body: summaryOf(parsed) })
    }
    const result = checkRequest(task.endpoint, parsed, task.target)
    return result instanceof Refusal ? refused(result) : checkedFrame(result)
  }
}
