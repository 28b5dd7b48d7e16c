import { type InferencePath, requestVocabulary } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { errorIn } from "./engineErrorBody.ts"
import { promptTooLong } from "./promptTooLong.ts"
import { engineFailed, invalidParameter, modelOverloaded, type Refusal } from "./refusals.ts"

/** The number of tokens in the message that exceeds the limit; one more than the limit if there is none. */
const tokensIn = (message: string, most: number): number => {
  const beyond = [...message.matchAll(/\d{1,12}/g)].map(([digits]) => Number(digits)).filter((count) => count > most)
  return beyond.length === 0 ? most + 1 : Math.min(...beyond)
}

/** The wordings of all engines. They do not overlap, and stand-ins write those of other engines. */
const wordings = engines.map(({ wire }) => wire.errorWords)
const patterns = {
  promptTooLong: wordings.map(({ promptTooLong }) => promptTooLong),
  noRoom: wordings.flatMap(({ noRoom }) => noRoom ?? []),
  schemaRefused: wordings.map(({ schemaRefused }) => schemaRefused),
  refusedKeywords: wordings.map(({ refusedKeywords }) => refusedKeywords)
}

/** The named groups of the first pattern that matches; null if none does. */
const groupsOf = (name: keyof typeof patterns, message: string): Readonly<Record<string, string>> | null => {
  for (const pattern of patterns[name]) {
    const match = pattern.exec(message)
    if (match !== null) return match.groups ?? {}
  }
  return null
}

/** The tokens that the prompt leaves for its answer, if the engine rejected the request for that reason. Else null. */
export const roomLeft = (body: string): number | null => {
  const { context, prompt } = groupsOf("noRoom", body) ?? {}
  const room = Number(context) - Number(prompt)
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

/**
 * Describes the part of a schema that an engine does not support. Only standard keywords are repeated, never the
 * caller's own text.
 */
const aboutSchema = (message: string): string => {
  if (groupsOf("schemaRefused", message) === null) return ""
  const refused = groupsOf("refusedKeywords", message)?.keywords ?? ""
  const names = (refused.match(/[$\w]+/g) ?? []).filter((word) => keywords.has(word))
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
  const long = groupsOf("promptTooLong", message)
  if (long === null) return refusedField(error?.param, message, at.endpoint)
  const { prompt, refused } = long
  const context = at.maxModelLen
  const tokens = prompt === undefined ? { tokens: tokensIn(message, context), most: context } : { tokens: Number(prompt), most: Number(refused) - 1 }
  return promptTooLong(at.endpoint, { context, ...tokens })
}
