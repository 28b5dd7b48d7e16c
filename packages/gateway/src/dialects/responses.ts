import { finishOfResponse, ResponseEnd } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Dialect, WholeAnswer } from "./Dialect.ts"
import { openAiError } from "./openAiError.ts"
import { ResponsesReader } from "./ResponsesReader.ts"
import { classesOfResponse, responsesUsage } from "./responsesParts.ts"

const decodeMembers = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const decodeAnswer = Schema.decodeUnknownOption(ResponseEnd)

const readWhole = (text: string): WholeAnswer | null => {
  const members = Option.getOrNull(decodeMembers(text))
  const answer = Option.getOrNull(decodeAnswer(members))
  if (members === null || answer === null) return null
  const finishReason = finishOfResponse(answer)
  return {
    usage: answer.usage == null ? null : classesOfResponse(answer.usage),
    finished: finishReason !== null,
    finishReason,
    body: JSON.stringify({ ...members, store: false })
  }
}

/** `/v1/responses`. Nothing is stored. */
export const responses: Dialect = {
  makeReader: (options) => new ResponsesReader(options),
  readWhole,
  usageOf: responsesUsage,
  heartbeat: ": keep-alive\n\n",
  errorBody: openAiError
}
