import { MessageUsage, optionalNullable, TokenCountAnswer } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Dialect, WholeAnswer } from "./Dialect.ts"
import { MessagesReader } from "./MessagesReader.ts"
import { classesOfMessage, finishOfStop, messagesError, messagesUsage } from "./messagesParts.ts"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      type: Schema.Literal("message"),
      stop_reason: optionalNullable(Schema.String),
      usage: optionalNullable(MessageUsage)
    })
  )
)

const readWhole = (text: string): WholeAnswer | null => {
  const answer = Option.getOrNull(decode(text))
  if (answer === null) return null
  const { stop_reason, usage } = answer
  const finishReason = stop_reason == null ? null : finishOfStop(stop_reason)
  return { usage: usage == null ? null : classesOfMessage(usage), finished: finishReason !== null, finishReason, body: text }
}

const decodeCount = Schema.decodeUnknownOption(Schema.fromJsonString(TokenCountAnswer))

/** Counting tokens generates nothing, so it costs nothing. */
const nothing = { input_tokens: 0, output_tokens: 0, cache_read_tokens: null, cache_write_tokens: null }

/** `/v1/messages`. */
export const messages: Dialect = {
  makeReader: () => new MessagesReader(),
  readWhole,
  usageOf: messagesUsage,
  heartbeat: 'event: ping\ndata: {"type":"ping"}\n\n',
  errorBody: messagesError
}

/** `/v1/messages/count_tokens`. */
export const countTokens: Dialect = {
  ...messages,
  readWhole: (text) =>
    Option.getOrNull(
      Option.map(decodeCount(text), ({ input_tokens }) => ({ usage: nothing, finished: true, finishReason: null, body: JSON.stringify({ input_tokens }) }))
    )
}
