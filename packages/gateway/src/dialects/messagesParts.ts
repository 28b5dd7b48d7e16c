import { MessageUsage, stopReasons, type Usage } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Refusal } from "../refusals.ts"

const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(MessageUsage))

export const classesOfMessage = (usage: MessageUsage): Usage => ({
  input_tokens: usage.input_tokens ?? 0,
  output_tokens: usage.output_tokens ?? 0,
  cache_read_tokens: usage.cache_read_input_tokens ?? null,
  cache_write_tokens: usage.cache_creation_input_tokens ?? null
})

/** Reads the `usage` member of a message. */
export const messagesUsage = (json: string): Usage | null => Option.getOrNull(Option.map(decodeUsage(json), classesOfMessage))

/** The finish reason in the record for a `stop_reason`; null if it is not a valid one. */
export const finishOfStop = (reason: string): string | null => stopReasons.get(reason) ?? null

/** The vendor's error type. */
const typeOf = ({ status, type }: Refusal): string =>
  status === 413 ? "request_too_large" : status === 503 ? "overloaded_error" : status === 504 ? "timeout_error" : type

/** The Error object of the Anthropic API. */
export const messagesError = (error: Refusal, requestId: string): string =>
  JSON.stringify({
    type: "error",
    error: { type: typeOf(error), message: error.message, details: { error_code: error.code, param: error.param } },
    request_id: requestId
  })
