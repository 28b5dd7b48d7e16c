import { schemaProblem } from "@seatrial/domain"
import { Effect, Result, Schema } from "effect"
import { invalidBody, invalidParameter, type Refusal, unknownParameter, unsupportedParameter, unsupportedValue } from "./refusals.ts"

const optional = Schema.optionalKey
const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const PositiveInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const sampling = {
  model: Schema.String.check(Schema.isBetweenLength(1, 256)),
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
  seed: optional(Schema.Int),
  stop: optional(Schema.Union([Schema.NonEmptyString, Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, 4))])),
  user: optional(Schema.String)
}

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
  metadata: optional(Schema.Record(Schema.String, Schema.String)),
  safety_identifier: optional(Schema.String),
  prompt_cache_key: optional(Schema.String),
  store: optional(Schema.Literal(false)),
  service_tier: optional(Schema.Literals(["auto", "default"])),
  modalities: optional(Schema.Tuple([Schema.Literal("text")])),
  response_format: optional(Schema.Struct({ type: Schema.Literal("text") }))
})

const CompletionBody = Schema.Struct({
  ...sampling,
  prompt: Schema.Union([Schema.String, Schema.Array(Schema.Int).check(Schema.isMinLength(1))]),
  echo: optional(Schema.Boolean),
  logprobs: optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })))
})

/** Accepted for the clients' sake and without effect: never sent to an engine. */
const advisory = new Set(["user", "metadata", "safety_identifier", "prompt_cache_key", "store", "service_tier", "modalities", "response_format"])

/** Real fields of the API that no served model offers yet. */
const unsupported = new Set([
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "reasoning_effort",
  "chat_template_kwargs",
  "logit_bias",
  "audio",
  "prediction",
  "web_search_options",
  "best_of",
  "suffix"
])

export type Endpoint = "/v1/chat/completions" | "/v1/completions"

/** A request that was checked against the closed vocabulary of its endpoint. */
export interface CheckedRequest {
  readonly endpoint: Endpoint
  readonly model: string
  readonly stream: boolean
  /** Whether the caller asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** What goes to the engine: serialised from what was checked, never the caller's bytes. */
  readonly engineBody: string
}

const withoutNulls = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
    : value

const modelField = Schema.decodeUnknownResult(Schema.Struct({ model: Schema.String, stream: optional(Schema.Unknown) }))

/** The names of model and streaming, as far as the body tells them, for the record of a refused request. */
export const namesOf = (body: unknown): { readonly model: string | null; readonly stream: boolean | null } =>
  Result.match(modelField(body), {
    onFailure: () => ({ model: null, stream: null }),
    onSuccess: ({ model, stream }) => ({ model, stream: typeof stream === "boolean" ? stream : null })
  })

const decodeChat = Schema.decodeUnknownResult(ChatBody, { onExcessProperty: "error" })
const decodeCompletion = Schema.decodeUnknownResult(CompletionBody, { onExcessProperty: "error" })

const decode = (endpoint: Endpoint, body: unknown): Result.Result<typeof ChatBody.Type | typeof CompletionBody.Type, Schema.SchemaError> =>
  endpoint === "/v1/chat/completions" ? decodeChat(body) : decodeCompletion(body)

/** Checks a parsed body; `null` members count as absent. */
export const checkRequest = Effect.fnUntraced(function* (endpoint: Endpoint, parsed: unknown): Effect.fn.Return<CheckedRequest, Refusal> {
  const decoded = decode(endpoint, withoutNulls(parsed))
  if (Result.isFailure(decoded)) {
    const { message, param, unexpected } = schemaProblem(decoded.failure.issue)
    if (param === null) return yield* invalidBody(`The body ${message}.`)
    if (unexpected && unsupported.has(param)) return yield* unsupportedParameter(`The model does not support ${param}.`, param)
    if (unexpected) return yield* unknownParameter(`${param} ${message} of this request.`, param)
    if (param === "n" || /\.(type|role)$/.test(param)) return yield* unsupportedValue(`${param}: ${message}.`, param)
    return yield* invalidParameter(`${param}: ${message}.`, param)
  }
  const { stream = false, stream_options, ...rest } = decoded.success
  if (stream_options !== undefined && !stream) return yield* unsupportedParameter("stream_options goes with `stream: true` only.", "stream_options")
  if ("max_completion_tokens" in rest && rest.max_tokens !== undefined && rest.max_tokens !== rest.max_completion_tokens) {
    return yield* invalidParameter("max_tokens and max_completion_tokens differ; send one of them.", "max_completion_tokens")
  }
  if ("messages" in rest && rest.top_logprobs !== undefined && rest.logprobs !== true) {
    return yield* invalidParameter("top_logprobs goes with `logprobs: true` only.", "top_logprobs")
  }
  const forwarded = Object.fromEntries(Object.entries(rest).filter(([name]) => !advisory.has(name)))
  return {
    endpoint,
    model: rest.model,
    stream,
    wantsUsage: stream_options?.include_usage === true,
    engineBody: JSON.stringify(stream ? { ...forwarded, stream, stream_options: { include_usage: true, continuous_usage_stats: true } } : forwarded)
  }
})
