import { adapterModel, type InferencePath, type RequestField, responseFormatVocabulary, schemaProblem } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import { Result, Schema } from "effect"
import { invalidBody, invalidParameter, Refusal, unknownParameter, unsupportedParameter, unsupportedValue } from "./refusals.ts"

const optional = Schema.optionalKey
const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const PositiveInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
// Not an Int: it may be larger than the integers that a number holds exactly. Its digits are taken from the text.
const Seed = Schema.Finite.check(
  Schema.makeFilter((seed: number) => Number.isInteger(seed) && seed >= -(2 ** 63) && seed <= 2 ** 63, { expected: "an integer of 64 bits" })
)

type Chat = "/v1/chat/completions"
type Completion = "/v1/completions"
// The table of the vocabulary says which fields there are, and the types hold these schemas to it: to all of its fields, and to no others.
type Fields<Names extends string> = Readonly<Record<Names, Schema.Top>>

const sampling = {
  model: Schema.String,
  stream: optional(Schema.Boolean),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean), include_obfuscation: optional(Schema.Boolean) })),
  max_tokens: optional(PositiveInt),
  temperature: optional(between(0, 2)),
  top_p: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1, exclusiveMinimum: true }))),
  top_k: optional(Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 1_000_000 }))),
  min_p: optional(between(0, 1)),
  presence_penalty: optional(between(-2, 2)),
  frequency_penalty: optional(between(-2, 2)),
  repetition_penalty: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2, exclusiveMinimum: true }))),
  n: optional(Schema.Literal(1)),
  seed: optional(Seed),
  stop: optional(Schema.Union([Schema.NonEmptyString, Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, 4))])),
  user: optional(Schema.String)
} satisfies Partial<Fields<RequestField<Chat> & RequestField<Completion>>>

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const Message = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant"]),
  content: Schema.Union([Schema.String, Schema.Array(TextPart)]),
  name: optional(Schema.String)
})

const ChatBody = Schema.Struct({
  ...sampling,
  messages: Schema.Array(Message).check(Schema.isMinLength(1)),
  max_completion_tokens: optional(PositiveInt),
  logprobs: optional(Schema.Boolean),
  top_logprobs: optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 }))),
  metadata: optional(Schema.Record(Schema.String, Schema.String).check(Schema.isMaxProperties(16))),
  safety_identifier: optional(Schema.String),
  prompt_cache_key: optional(Schema.String),
  prompt_cache_retention: optional(Schema.String),
  prompt_cache_options: optional(Schema.Record(Schema.String, Schema.Unknown)),
  store: optional(Schema.Literal(false)),
  service_tier: optional(Schema.Literals(["auto", "default"])),
  verbosity: optional(Schema.Literal("medium")),
  modalities: optional(Schema.Tuple([Schema.Literal("text")])),
  response_format: optional(Schema.Struct({ type: Schema.Literals(responseFormatVocabulary["/v1/chat/completions"]) }))
} satisfies Fields<RequestField<Chat>>)

const isTokens = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.length > 0 && value.every((token) => Number.isSafeInteger(token) && token >= 0)

const CompletionBody = Schema.Struct({
  ...sampling,
  // One look at each of what may be a million tokens.
  prompt: Schema.Union([Schema.String, Schema.declare(isTokens, { expected: "a list of tokens" })]),
  echo: optional(Schema.Boolean),
  logprobs: optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))),
  best_of: optional(Schema.Literal(1))
} satisfies Fields<RequestField<Completion>>)

/** Accepted for the clients' sake and without effect: never sent to an engine. */
const advisory = new Set([
  "user",
  "metadata",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "store",
  "service_tier",
  "verbosity",
  "modalities",
  "response_format",
  "best_of"
])

/** Real fields of the API that no served model offers yet. */
const unsupported = new Set([
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "reasoning_effort",
  "chat_template_kwargs",
  "thinking_token_budget",
  "logit_bias",
  "audio",
  "prediction",
  "web_search_options",
  "moderation",
  "suffix"
])

/** Where a value of the API may be right and is still not served. */
const closedValues = /^(?:n|store|service_tier|verbosity|best_of|modalities.*|.*\.(?:type|role))$/

export type Endpoint = InferencePath

/** A request that was checked against the closed vocabulary of its endpoint. */
export interface CheckedRequest {
  readonly endpoint: Endpoint
  readonly model: string
  readonly stream: boolean
  /** Whether the caller asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** How many choices the answer has. */
  readonly choices: number
  /** What goes to the engine: serialised from what was checked, never the caller's bytes. */
  readonly engineBody: string
}

/**
 * The body for an engine that knows the name only that it was started with, which a model that was published or withdrawn since is not called by any more: without a
 * name it answers all the same. The name is the first member but for the seed, and a quotation mark inside a string is escaped.
 */
export const withoutModel = ({ engineBody, model }: Pick<CheckedRequest, "engineBody" | "model">): string =>
  engineBody.replace(`"model":${JSON.stringify(model)},`, () => "")

/** The model's name in a body, which is the first member but for the seed. */
const named = (model: string) => `"model":${JSON.stringify(model)}`

/** The body for the route's engine, which knows an adapter by a name of its own, and of vLLM's is asked without a name. */
export const bodyFor = ({ adapted, runtime }: Pick<Route, "adapted" | "runtime">, checked: Pick<CheckedRequest, "engineBody" | "model">): string => {
  if (adapted) return checked.engineBody.replace(named(checked.model), () => named(adapterModel(runtime)))
  return runtime === "vllm" ? withoutModel(checked) : checked.engineBody
}

/** Gives what an engine says of an adapter's request the name that the caller asked for. A quotation mark inside a string is escaped, so that no generated text is changed. */
export const namedAsAsked =
  ({ adapted, runtime }: Pick<Route, "adapted" | "runtime">, { model }: Pick<CheckedRequest, "model">): ((text: string) => string) =>
  (text) =>
    adapted ? text.replace(new RegExp(`"model":\\s?"${adapterModel(runtime)}"`), () => named(model)) : text

/** A body whose model is named, and whose other members are not checked yet. */
export interface ParsedBody {
  readonly model: string
  readonly members: Readonly<Record<string, unknown>>
  readonly text: string
}

const maxDepth = 64
/** Objects and lists, which cost far more to check than they cost to send. */
const maxContainers = 100_000

/** The value without the members that are null, which count as absent; undefined where it is nested too deeply or has too many parts. */
const withoutNulls = (body: unknown): unknown => {
  let containers = 0
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value !== "object" || value === null) return value
    if (depth > maxDepth || ++containers > maxContainers) throw new RangeError()
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((item) => copy(item, depth + 1))
    const kept: Array<[string, unknown]> = []
    for (const [name, member] of Object.entries(value)) {
      if (member !== null) kept.push([name, copy(member, depth + 1)])
    }
    return Object.fromEntries(kept)
  }
  try {
    return copy(body, 1)
  } catch {
    return undefined
  }
}

const decodeMembers = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))
const isMembers = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

/** Whether the caller asked for a stream, as far as the body tells, for the record of a refused request. */
export const streamOf = ({ stream }: Readonly<Record<string, unknown>>): boolean | null => (typeof stream === "boolean" ? stream : null)

/** Reads the text of a body as far as the name of its model. */
export const parseBody = (text: string): ParsedBody | Refusal => {
  const parsed = decodeMembers(text)
  if (Result.isFailure(parsed)) return invalidBody("The body is not valid JSON.")
  if (!isMembers(parsed.success)) return invalidBody("The body must be a JSON object.")
  const members = withoutNulls(parsed.success)
  if (!isMembers(members)) return invalidBody(`The body may be nested ${maxDepth} deep and have ${maxContainers} objects and lists at most.`)
  const { model } = members
  if (typeof model !== "string" || model.length < 1 || model.length > 256) {
    return invalidParameter(model === undefined ? "model is required." : "model must be a string of 1 to 256 characters.", "model")
  }
  return { model, members, text }
}

const decodeChat = Schema.decodeUnknownResult(ChatBody, { onExcessProperty: "error" })
const decodeCompletion = Schema.decodeUnknownResult(CompletionBody, { onExcessProperty: "error" })

const decode = (endpoint: Endpoint, body: unknown): Result.Result<typeof ChatBody.Type | typeof CompletionBody.Type, Schema.SchemaError> =>
  endpoint === "/v1/chat/completions" ? decodeChat(body) : decodeCompletion(body)

/** The seed's own digits, where a number does not hold them: the last such member counts, as it does for the parser. */
const exactSeed = (text: string): string | undefined => [...text.matchAll(/"seed"\s*:\s*(-?\d{16,19})\s*[,}]/g)].at(-1)?.[1]

const serialise = (body: Readonly<Record<string, unknown>>, text: string): string | Refusal => {
  if (body.seed === undefined || Number.isSafeInteger(body.seed)) return JSON.stringify(body)
  const digits = exactSeed(text)
  if (digits === undefined || BigInt.asIntN(64, BigInt(digits)) !== BigInt(digits)) {
    return invalidParameter("seed: expected an integer of 64 bits.", "seed")
  }
  const { seed: _, ...rest } = body
  return `{"seed":${digits},${JSON.stringify(rest).slice(1)}`
}

/** Checks the members of a body against the closed vocabulary of its endpoint. */
export const checkRequest = (endpoint: Endpoint, { members, text }: ParsedBody): CheckedRequest | Refusal => {
  const { tools, ...others } = members
  // Many clients send an empty list where there are no tools.
  const decoded = decode(endpoint, Array.isArray(tools) && tools.length === 0 ? others : members)
  if (Result.isFailure(decoded)) {
    const { message, param, unexpected } = schemaProblem(decoded.failure.issue)
    if (param === null) return invalidBody(`The body ${message}.`)
    if (unexpected && unsupported.has(param)) return unsupportedParameter(`The model does not support ${param}.`, param)
    if (unexpected) return unknownParameter(`${param} ${message} of this request.`, param)
    if (closedValues.test(param)) return unsupportedValue(`${param}: ${message}.`, param)
    return invalidParameter(`${param}: ${message}.`, param)
  }
  const { stream = false, stream_options, ...rest } = decoded.success
  if (stream_options !== undefined && !stream) return unsupportedParameter("stream_options goes with `stream: true` only.", "stream_options")
  if ("max_completion_tokens" in rest && rest.max_tokens !== undefined && rest.max_tokens !== rest.max_completion_tokens) {
    return invalidParameter("max_tokens and max_completion_tokens differ; send one of them.", "max_completion_tokens")
  }
  if ("messages" in rest && rest.top_logprobs !== undefined && rest.logprobs !== true) {
    return invalidParameter("top_logprobs goes with `logprobs: true` only.", "top_logprobs")
  }
  const forwarded = Object.fromEntries(Object.entries(rest).filter(([name]) => !advisory.has(name)))
  const engineBody = serialise(stream ? { ...forwarded, stream, stream_options: { include_usage: true, continuous_usage_stats: true } } : forwarded, text)
  if (engineBody instanceof Refusal) return engineBody
  return { endpoint, model: rest.model, stream, wantsUsage: stream_options?.include_usage === true, choices: rest.n ?? 1, engineBody }
}
