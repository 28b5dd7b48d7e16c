import { optionalNullable } from "@seatrial/domain"
import { Option, Schema } from "effect"

const EngineErrorFields = {
  message: Schema.String,
  param: Schema.optionalKey(Schema.Unknown),
  code: optionalNullable(Schema.Union([Schema.Finite, Schema.String]))
}
// vLLM nests its errors; SGLang's chat endpoint does not.
const EngineError = Schema.fromJsonString(Schema.Union([Schema.Struct({ error: Schema.Struct(EngineErrorFields) }), Schema.Struct(EngineErrorFields)]))
const decode = Schema.decodeUnknownOption(EngineError)

/** The error in an engine's answer; null if it is none. */
export const errorIn = (body: string) => Option.getOrNull(Option.map(decode(body), (decoded) => ("error" in decoded ? decoded.error : decoded)))

/** Characters that are kept of each text of a long error. Engines write what `readEngineError` looks for first. */
const maxErrorText = 2_048

/** A long error of an engine with the beginning of its texts; empty if the text is no error. */
export const shortError = (body: string): string => {
  const error = errorIn(body)
  if (error === null) return ""
  const short = (value: unknown) => (typeof value === "string" ? value.slice(0, maxErrorText).toWellFormed() : value)
  const { code, message, param } = error
  return JSON.stringify({ error: { message: short(message), code: short(code), ...(typeof param === "string" ? { param: short(param) } : {}) } })
}
