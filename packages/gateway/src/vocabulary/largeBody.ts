import { isAscii } from "node:buffer"
import type { InferencePath } from "@seatrial/domain"
import { Schema } from "effect"
import { Refusal } from "../refusals.ts"
import { prefixOf } from "../routing/prefixOf.ts"
import type { Target } from "./Checking.ts"
import { checkRequest } from "./checkRequest.ts"
import type { MessageFrame } from "./frames.ts"
import { type ParsedBody, parseBody } from "./parseBody.ts"

/** The check to run on a body; null only parses it. */
export type LargeBodyCheck = { readonly endpoint: InferencePath; readonly target: Target } | null

/** The head of a question to the process that parses large bodies. */
export interface LargeBodyQuestion {
  readonly check: LargeBodyCheck
  /** Whether the body is the one of the previous question. Then it is not sent and parsed again. */
  readonly isHeld: boolean
}

/** Serializes a question, including sets and maps. */
export const encodeQuestion = (question: LargeBodyQuestion): string =>
  JSON.stringify(question, (_, value: unknown) => (value instanceof Set ? { $set: [...value] } : value instanceof Map ? { $map: [...value] } : value))

/** Parses the output of `encodeQuestion`. */
export const decodeQuestion = (text: string): LargeBodyQuestion =>
  JSON.parse(text, (_, value) => (Array.isArray(value?.$set) ? new Set(value.$set) : Array.isArray(value?.$map) ? new Map(value.$map) : value))

const NullableText = Schema.NullOr(Schema.String)

/** The head of an answer. */
const Answer = Schema.Union([
  Schema.TaggedStruct("Read", { body: Schema.Struct({ model: Schema.String, members: Schema.Record(Schema.String, Schema.Unknown) }) }),
  /** The body of the frame is the engine's body. */
  Schema.TaggedStruct("Checked", {
    isAscii: Schema.Boolean,
    checked: Schema.Struct({
      model: Schema.String,
      stream: Schema.Boolean,
      wantsUsage: Schema.Boolean,
      choices: Schema.Int,
      outputLimit: Schema.NullOr(Schema.Finite),
      prompts: Schema.Int,
      givenTokens: Schema.NullOr(Schema.Int),
      cachedUnknown: Schema.Boolean,
      images: Schema.Array(Schema.Struct({ param: Schema.String, url: Schema.String, placeholder: Schema.String }))
    })
  }),
  Schema.TaggedStruct("Refused", { status: Schema.Int, type: Schema.String, code: Schema.String, message: Schema.String, param: NullableText })
])
export type LargeBodyAnswer = typeof Answer.Type

export const decodeAnswer = Schema.decodeUnknownSync(Schema.fromJsonString(Answer))

const noBody = new Uint8Array()
const frameOf = (answer: LargeBodyAnswer, body: Uint8Array = noBody): MessageFrame => ({ head: JSON.stringify(answer), body })

const refused = ({ code, message, param, status, type }: Refusal) => frameOf({ _tag: "Refused", status, type, code, message, param })

/** The members that the gateway needs before the check: `stream`, and those that routing uses. */
const summaryOf = ({ members, model }: ParsedBody): ParsedBody => {
  const { prompt_cache_key, stream } = members
  const beginning = typeof prompt_cache_key === "string" ? { prompt_cache_key } : { prompt: prefixOf(members) }
  return { model, members: { ...(typeof stream === "boolean" ? { stream } : {}), ...beginning } }
}

/** Answers questions. It holds the last parsed body until the next question. */
export const makeLargeBodyReader = () => {
  let held: ParsedBody | null = null
  return ({ check, isHeld }: LargeBodyQuestion, bytes: Buffer): MessageFrame => {
    const parsed = isHeld && held !== null ? held : parseBody(bytes)
    held = null
    if (parsed instanceof Refusal) return refused(parsed)
    if (check === null) {
      held = parsed
      return frameOf({ _tag: "Read", body: summaryOf(parsed) })
    }
    const result = checkRequest(check.endpoint, parsed, check.target)
    if (result instanceof Refusal) return refused(result)
    const { endpoint: _, engineBody, imageCount: _images, withoutImages: _text, ...checked } = result
    const body = Buffer.from(engineBody)
    return frameOf({ _tag: "Checked", isAscii: isAscii(body), checked }, body)
  }
}
