import { Option, Schema } from "effect"
import type { Dialect, WholeAnswer } from "./Dialect.ts"
import { MessagesReader } from "./MessagesReader.ts"
import { classesOfMessage, finishOfStop, MessagesUsage, messagesError, messagesUsage } from "./messagesParts.ts"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      type: Schema.Literal("message"),
      stop_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
      usage: Schema.optionalKey(Schema.NullOr(MessagesUsage))
    })
  )
)

const readWhole = (text: string): WholeAnswer | null => {
  const answer = Option.getOrNull(decode(text))
  if (answer === null) return null
  const { stop_reason, usage } = answer
  return { usage: usage == null ? null : classesOfMessage(usage), finishReason: stop_reason == null ? null : finishOfStop(stop_reason), body: text }
}

/** `/v1/messages`. */
export const messages: Dialect = {
  makeReader: () => new MessagesReader(),
  readWhole,
  usageOf: messagesUsage,
  heartbeat: 'event: ping\ndata: {"type":"ping"}\n\n',
  errorBody: messagesError
}
