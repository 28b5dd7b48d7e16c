import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A refusal in the format of vLLM: `{"error":{message,type,param,code}}` with the same HTTP status. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  readonly type: string
  readonly param: string | null

  constructor(status: number, type: string, message: string, param: string | null = null) {
    super(message)
    this.status = status
    this.type = type
    this.param = param
  }

  body() {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.status } }
  }
}

export const badRequest = (message: string, param: string | null = null) => new ApiError(400, "BadRequestError", message, param)

export const given = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
export const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))
const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const TokenId = atLeast(0)
/** A 64-bit integer, as vLLM accepts it. The last digits of a value beyond the safe integers are lost. */
const Seed = between(-(2 ** 63), 2 ** 63).check(Schema.isMultipleOf(1))
const StopString = Schema.String.check(Schema.isBetweenLength(1, 1024))

export const sampling = {
  model: given(Schema.String),
  max_tokens: given(atLeast(1)),
  temperature: given(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
  top_p: given(Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))),
  top_k: given(atLeast(-1)),
  min_p: given(between(0, 1)),
  repetition_penalty: given(Schema.Finite.check(Schema.isGreaterThan(0))),
  presence_penalty: given(between(-2, 2)),
  frequency_penalty: given(between(-2, 2)),
  logit_bias: given(Schema.Record(Schema.String, Schema.Finite)),
  seed: given(Seed),
  n: given(atLeast(1)),
  stop: given(Schema.Union([StopString, Schema.Array(StopString).check(Schema.isMaxLength(16))])),
  stop_token_ids: given(Schema.Array(TokenId).check(Schema.isMaxLength(64))),
  ignore_eos: given(Schema.Boolean),
  stream: given(Schema.Boolean),
  stream_options: given(Schema.Struct({ include_usage: given(Schema.Boolean), continuous_usage_stats: given(Schema.Boolean) })),
  prompt_logprobs: given(atLeast(0)),
  return_token_ids: given(Schema.Boolean),
  return_prompt_token_ids: given(Schema.Boolean),
  cache_salt: given(Schema.String.check(Schema.isPattern(/^[^@/\\]{1,128}$/))),
  response_format: given(
    Schema.Union([
      Schema.Struct({ type: Schema.Literals(["text", "json_object"]) }),
      Schema.Struct({ type: Schema.Literal("json_schema"), json_schema: Schema.Struct({ schema: Schema.Record(Schema.String, Schema.Unknown) }) })
    ])
  )
}

export const Name = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.:-]{1,64}$/))
const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Name,
    description: given(Schema.String),
    parameters: given(Schema.Record(Schema.String, Schema.Unknown)),
    strict: given(Schema.Boolean)
  })
})
const ToolCall = Schema.Struct({
  id: given(Schema.String),
  type: given(Schema.Literal("function")),
  function: Schema.Struct({ name: Name, arguments: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]) })
})
const ToolChoice = Schema.Union([
  Schema.Literals(["none", "auto", "required"]),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) })
])
const Tools = given(Schema.Array(Tool).check(Schema.isBetweenLength(1, 128)))

const Message = Schema.Struct({
  role: Schema.String.check(Schema.isMinLength(1)),
  content: given(Schema.Union([Schema.String, Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))])),
  tool_calls: given(Schema.Array(ToolCall)),
  tool_call_id: given(Schema.String),
  name: given(Schema.String)
})
const Messages = Schema.Array(Message).check(Schema.isMinLength(1))
const TemplateSettings = given(Schema.Record(Schema.String, Schema.Unknown))

/** Request bodies as vLLM accepts them. Fields that vLLM ignores are ignored. */
export const ChatBody = Schema.Struct({
  ...sampling,
  messages: Messages,
  tools: Tools,
  tool_choice: given(ToolChoice),
  parallel_tool_calls: given(Schema.Boolean),
  max_completion_tokens: given(atLeast(1)),
  logprobs: given(Schema.Boolean),
  top_logprobs: given(atLeast(0)),
  add_generation_prompt: given(Schema.Boolean),
  chat_template_kwargs: TemplateSettings
})

export const CompletionBody = Schema.Struct({
  ...sampling,
  prompt: Schema.Union([Schema.String, Schema.Array(TokenId), Schema.NonEmptyArray(Schema.String), Schema.NonEmptyArray(Schema.Array(TokenId))]),
  logprobs: given(atLeast(0)),
  echo: given(Schema.Boolean),
  suffix: given(Schema.String)
})

export const TokenizeBody = Schema.Union([
  Schema.Struct({ model: given(Schema.String), prompt: Schema.String, add_special_tokens: given(Schema.Boolean), return_token_strs: given(Schema.Boolean) }),
  Schema.Struct({
    model: given(Schema.String),
    messages: Messages,
    tools: Tools,
    add_special_tokens: given(Schema.Boolean),
    add_generation_prompt: given(Schema.Boolean),
    return_token_strs: given(Schema.Boolean),
    chat_template_kwargs: TemplateSettings
  })
])

export const DetokenizeBody = Schema.Struct({ model: given(Schema.String), tokens: Schema.Array(TokenId) })

export type ChatBody = typeof ChatBody.Type
export type CompletionBody = typeof CompletionBody.Type
export type SamplingBody = Omit<CompletionBody, "prompt" | "logprobs" | "echo" | "suffix">
export type MessageBody = typeof Message.Type

/** Decodes a request body. Throws `ApiError` 400 with the path of the field in `param`. */
export const decodeBody = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, text: string): S["Type"] => {
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(schema))(text)
  if (Result.isSuccess(decoded)) return decoded.success
  const message = decoded.failure.message.replaceAll(/\s+/g, " ")
  throw badRequest(`1 validation error: ${message.slice(0, 500)}`, /at \["([^"]+)"\]/.exec(message)?.[1] ?? null)
}
