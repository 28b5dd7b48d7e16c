import { type InferencePath, optionalNullable, requestVocabulary } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { promptTooLong } from "./promptTooLong.ts"
import { engineFailed, invalidParameter, modelOverloaded, type Refusal } from "./refusals.ts"

const EngineErrorFields = {
  message: Schema.String,
  param: Schema.optionalKey(Schema.Unknown),
  code: optionalNullable(Schema.Union([Schema.Finite, Schema.String]))
}
// vLLM nests its errors; SGLang's chat endpoint does not.
const EngineError = Schema.fromJsonString(Schema.Union([Schema.Struct({ error: Schema.Struct(EngineErrorFields) }), Schema.Struct(EngineErrorFields)]))
const decode = Schema.decodeUnknownOption(EngineError)

/** The error in an engine's answer; null if it is none. */
const errorIn = (body: string) => Option.getOrNull(Option.map(decode(body), (decoded) => ("error" in decoded ? decoded.error : decoded)))

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

/** The number of tokens in the message that exceeds the limit; one more than the limit if there is none. */
const tokensIn = (message: string, most: number): number => {
  const beyond = [...message.matchAll(/\d{1,12}/g)].map(([digits]) => Number(digits)).filter((count) => count > most)
  return beyond.length === 0 ? most + 1 : Math.min(...beyond)
}

/** SGLang's error for a prompt at the end of its context, of which SGLang reserves some tokens. */
const longPrompt = /Input length \((\d{1,12}) tokens\) exceeds the maximum allowed length \((\d{1,12}) tokens\)/

/** SGLang rejects a token limit larger than the room that the prompt leaves. Other engines lower it. */
const noRoom = /maximum context length of (\d{1,9}) tokens\. .{0,100}?(\d{1,9}) tokens from the input messages/

/** The tokens that the prompt leaves for its answer, if the engine rejected the request for that reason. Else null. */
export const roomLeft = (body: string): number | null => {
  const match = noRoom.exec(body)
  const room = match === null ? 0 : Number(match[1]) - Number(match[2])
  return room > 0 ? room : null
}

/** Engines convert these requests into chat requests and report errors with the field names of chat. */
const asConversation: Partial<Readonly<Record<InferencePath, Readonly<Record<string, string>>>>> = {
  "/v1/responses": { messages: "input", response_format: "text" },
  "/v1/messages": { response_format: "output_config" }
}

/** JSON Schema keywords that some engine has no grammar for. */
const keywords = new Set([
  ...["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "format"],
  ...["minItems", "maxItems", "uniqueItems", "prefixItems", "contains", "minContains", "maxContains", "unevaluatedItems"],
  ...["minProperties", "maxProperties", "patternProperties", "propertyNames", "additionalProperties", "unevaluatedProperties"],
  ...["dependentRequired", "dependentSchemas", "dependencies", "if", "then", "else", "not", "oneOf", "allOf", "anyOf", "$ref", "$dynamicRef"]
])

const schemaRefused = /JSON schema contains features|Unimplemented keys:/
const keywordNames = /Unimplemented keys: \[([^\]]{1,500})\]|the keyword (\S{1,40}) is not supported/

/**
 * Describes the part of a schema that an engine does not support. Only standard keywords are repeated, never the
 * caller's own text.
 */
const aboutSchema = (message: string): string => {
  if (!schemaRefused.test(message)) return ""
  const [, several, one] = keywordNames.exec(message) ?? []
  const names = ((several ?? one)?.match(/[$\w]+/g) ?? []).filter((word) => keywords.has(word))
  return `: it does not support ${names.length === 0 ? "some keywords of the JSON schema" : `the JSON schema keywords ${names.join(", ")}`}`
}

/**
 * Reports the engine's error for a field of this path. Only field names of the API are repeated; the rest of the
 * message may echo the prompt.
 */
const refusedField = (param: unknown, message: string, endpoint: InferencePath): Refusal => {
  const fields: ReadonlyArray<string> = requestVocabulary[endpoint]
  const name = Object.entries(asConversation[endpoint] ?? {}).find(([theirs]) => theirs === param)?.[1] ?? param
  const field = fields.find((known) => known === name)
  const why = aboutSchema(message)
  if (field === undefined) return invalidParameter(`The engine cannot process the request with these parameters${why}.`)
  return invalidParameter(`${field}: the engine cannot process the request with this value${why}.`, field)
}

const overloads: ReadonlySet<number> = new Set([429, 503])
const callerFaults: ReadonlySet<number> = new Set([400, 413, 422])

/**
 * Converts an engine's error into one without the engine's text, which may echo the prompt. `status` is the HTTP
 * status; if it is 200, the code in the body counts.
 */
export const readEngineError = (body: string, status: number, at: { readonly endpoint: InferencePath; readonly maxModelLen: number }): Refusal => {
  const error = errorIn(body)
  const code = status === 200 ? Number(error?.code ?? 500) : status
  if (overloads.has(code)) return modelOverloaded
  // If the engine does not know the model or rejects our key, the caller is not at fault.
  if (!callerFaults.has(code)) return engineFailed
  const message = error?.message ?? ""
  const long = longPrompt.exec(message)
  if (long === null && !/context length|max_model_len|too long/i.test(message)) {
    return refusedField(error?.param, message, at.endpoint)
  }
  const context = at.maxModelLen
  const tokens = long === null ? { tokens: tokensIn(message, context), most: context } : { tokens: Number(long[1]), most: Number(long[2]) - 1 }
  return promptTooLong(at.endpoint, { context, ...tokens })
}
