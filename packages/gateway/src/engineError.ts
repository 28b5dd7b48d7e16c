import { type InferencePath, requestVocabulary } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { contextLengthExceeded, engineFailed, invalidParameter, modelOverloaded, type Refusal } from "./refusals.ts"

const Told = {
  message: Schema.String,
  param: Schema.optionalKey(Schema.Unknown),
  code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.String])))
}
// vLLM nests its errors; SGLang's chat endpoint does not.
const EngineError = Schema.fromJsonString(Schema.Union([Schema.Struct({ error: Schema.Struct(Told) }), Schema.Struct(Told)]))
const decode = Schema.decodeUnknownOption(EngineError)

/** The number of tokens in the message that exceeds the limit; one more than the limit if there is none. */
const askedFor = (message: string, most: number): number => {
  const beyond = [...message.matchAll(/\d{1,12}/g)].map(([digits]) => Number(digits)).filter((count) => count > most)
  return beyond.length === 0 ? most + 1 : Math.min(...beyond)
}

/** SGLang's error for a prompt at the end of its context, of which SGLang reserves some tokens. */
const longPrompt = /Input length \((\d{1,12}) tokens\) exceeds the maximum allowed length \((\d{1,12}) tokens\)/

/** SGLang rejects a token limit larger than the room that the prompt leaves. Other engines lower it. */
const noRoom = /maximum context length of (\d{1,9}) tokens\. .{0,100}?(\d{1,9}) tokens from the input messages/

/** The tokens that the prompt leaves for its answer, if the engine rejected the request for that reason. Else null. */
export const roomLeft = (body: string): number | null => {
  const found = noRoom.exec(body)
  const room = found === null ? 0 : Number(found[1]) - Number(found[2])
  return room > 0 ? room : null
}

interface TooLong {
  readonly context: number
  readonly asked: number
  readonly most: number
}

/** Clients and agents search error messages for these exact words. */
const openAi = ({ context }: TooLong) => `This model's maximum context length is ${context} tokens. Shorten the input or lower the tokens of the answer.`
const anthropic = ({ asked, most }: TooLong) => `prompt is too long: ${asked} tokens > ${most} maximum`
const wordings = {
  "/v1/chat/completions": openAi,
  "/v1/completions": openAi,
  "/v1/responses": openAi,
  "/v1/messages": anthropic,
  "/v1/messages/count_tokens": anthropic
} as const satisfies Readonly<Record<InferencePath, (long: TooLong) => string>>
const params: Readonly<Record<InferencePath, string>> = {
  "/v1/chat/completions": "messages",
  "/v1/completions": "prompt",
  "/v1/responses": "input",
  "/v1/messages": "messages",
  "/v1/messages/count_tokens": "messages"
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
const keywordsNamed = /Unimplemented keys: \[([^\]]{1,500})\]|the keyword (\S{1,40}) is not supported/

/**
 * Describes the part of a schema that an engine does not support. Only standard keywords are repeated, never the
 * caller's own text.
 */
const aboutSchema = (message: string): string => {
  if (!schemaRefused.test(message)) return ""
  const [, several, one] = keywordsNamed.exec(message) ?? []
  const named = ((several ?? one)?.match(/[$\w]+/g) ?? []).filter((word) => keywords.has(word))
  return `, since it does not know ${named.length === 0 ? "every keyword of its JSON schema" : `the JSON schema's ${named.join(", ")}`}`
}

/**
 * Reports the engine's error for a field of this path. Only field names of the API are repeated; the rest of the
 * message may echo the prompt.
 */
const refusedField = (param: unknown, message: string, endpoint: InferencePath): Refusal => {
  const fields: ReadonlyArray<string> = requestVocabulary[endpoint]
  const named = Object.entries(asConversation[endpoint] ?? {}).find(([theirs]) => theirs === param)?.[1] ?? param
  const field = fields.find((name) => name === named)
  const why = aboutSchema(message)
  if (field === undefined) return invalidParameter(`The engine cannot serve the request with these parameters${why}.`)
  return invalidParameter(`${field}: the engine cannot serve the request with this value${why}.`, field)
}

/**
 * Converts an engine's error into one without the engine's text, which may echo the prompt. `status` is the HTTP
 * status; if it is 200, the code in the body counts.
 */
export const readEngineError = (body: string, status: number, at: { readonly endpoint: InferencePath; readonly maxModelLen: number }): Refusal => {
  const told = Option.getOrNull(Option.map(decode(body), (error) => ("error" in error ? error.error : error)))
  const code = status === 200 ? Number(told?.code ?? 500) : status
  if (code === 503 || code === 429) return modelOverloaded
  // If the engine does not know the model or rejects our key, the caller is not at fault.
  if (code !== 400 && code !== 413 && code !== 422) return engineFailed
  const message = told?.message ?? ""
  const long = longPrompt.exec(message)
  if (long === null && !/context length|max_model_len|too long/i.test(message)) {
    return refusedField(told?.param, message, at.endpoint)
  }
  const context = at.maxModelLen
  const tokens = long === null ? { asked: askedFor(message, context), most: context } : { asked: Number(long[1]), most: Number(long[2]) - 1 }
  return contextLengthExceeded(wordings[at.endpoint]({ context, ...tokens }), params[at.endpoint])
}
