import { optionalNullable } from "@seatrial/domain"
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

export const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))
const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const TokenId = atLeast(0)
/** A 64-bit integer, as vLLM accepts it. The last digits of a value beyond the safe integers are lost. */
const Seed = between(-(2 ** 63), 2 ** 63).check(Schema.isMultipleOf(1))
const StopString = Schema.String.check(Schema.isBetweenLength(1, 1024))

export const sampling = {
  model: optionalNullable(Schema.String),
  max_tokens: optionalNullable(atLeast(1)),
  temperature: optionalNullable(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
  top_p: optionalNullable(Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))),
  top_k: optionalNullable(atLeast(-1)),
  min_p: optionalNullable(between(0, 1)),
  repetition_penalty: optionalNullable(Schema.Finite.check(Schema.isGreaterThan(0))),
  presence_penalty: optionalNullable(between(-2, 2)),
  frequency_penalty: optionalNullable(between(-2, 2)),
  logit_bias: optionalNullable(Schema.Record(Schema.String, Schema.Finite)),
  seed: optionalNullable(Seed),
  n: optionalNullable(atLeast(1)),
  stop: optionalNullable(Schema.Union([StopString, Schema.Array(StopString).check(Schema.isMaxLength(16))])),
  stop_token_ids: optionalNullable(Schema.Array(TokenId).check(Schema.isMaxLength(64))),
  ignore_eos: optionalNullable(Schema.Boolean),
  stream: optionalNullable(Schema.Boolean),
  stream_options: optionalNullable(
    Schema.Struct({ include_usage: optionalNullable(Schema.Boolean), continuous_usage_stats: optionalNullable(Schema.Boolean) })
  ),
  prompt_logprobs: optionalNullable(atLeast(0)),
  return_token_ids: optionalNullable(Schema.Boolean),
  return_prompt_token_ids: optionalNullable(Schema.Boolean),
  cache_salt: optionalNullable(Schema.String.check(Schema.isPattern(/^[^@/\\]{1,128}$/))),
  response_format: optionalNullable(
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
    description: optionalNullable(Schema.String),
    parameters: optionalNullable(Schema.Record(Schema.String, Schema.Unknown)),
    strict: optionalNullable(Schema.Boolean)
  })
})
const ToolCall = Schema.Struct({
  id: optionalNullable(Schema.String),
  type: optionalNullable(Schema.Literal("function")),
  function: Schema.Struct({ name: Name, arguments: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]) })
})
const ToolChoice = Schema.Union([
  Schema.Literals(["none", "auto", "required"]),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) })
])
const Tools = optionalNullable(Schema.Array(Tool).check(Schema.isBetweenLength(1, 128)))

const Message = Schema.Struct({
  role: Schema.String.check(Schema.isMinLength(1)),
  content: optionalNullable(Schema.Union([Schema.String, Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))])),
  tool_calls: optionalNullable(Schema.Array(ToolCall)),
  tool_call_id: optionalNullable(Schema.String),
  name: optionalNullable(Schema.String)
})
const Messages = Schema.Array(Message).check(Schema.isMinLength(1))
const TemplateSettings = optionalNullable(Schema.Record(Schema.String, Schema.Unknown))

/** Request bodies as vLLM accepts them. Fields that vLLM ignores are ignored. */
export const ChatBody = Schema.Struct({
  ...sampling,
  messages: Messages,
  tools: Tools,
  tool_choice: optionalNullable(ToolChoice),
  parallel_tool_calls: optionalNullable(Schema.Boolean),
  max_completion_tokens: optionalNullable(atLeast(1)),
  logprobs: optionalNullable(Schema.Boolean),
  top_logprobs: optionalNullable(atLeast(0)),
  add_generation_prompt: optionalNullable(Schema.Boolean),
  chat_template_kwargs: TemplateSettings
})

export const CompletionBody = Schema.Struct({
  ...sampling,
  prompt: Schema.Union([Schema.String, Schema.Array(TokenId), Schema.NonEmptyArray(Schema.String), Schema.NonEmptyArray(Schema.Array(TokenId))]),
  logprobs: optionalNullable(atLeast(0)),
  echo: optionalNullable(Schema.Boolean),
  suffix: optionalNullable(Schema.String)
})

export const TokenizeBody = Schema.Union([
  Schema.Struct({
    model: optionalNullable(Schema.String),
    prompt: Schema.String,
    add_special_tokens: optionalNullable(Schema.Boolean),
    return_token_strs: optionalNullable(Schema.Boolean)
  }),
  Schema.Struct({
    model: optionalNullable(Schema.String),
    messages: Messages,
    tools: Tools,
    add_special_tokens: optionalNullable(Schema.Boolean),
    add_generation_prompt: optionalNullable(Schema.Boolean),
    return_token_strs: optionalNullable(Schema.Boolean),
    chat_template_kwargs: TemplateSettings
  })
])

export const DetokenizeBody = Schema.Struct({ model: optionalNullable(Schema.String), tokens: Schema.Array(TokenId) })

export type ChatBody = typeof ChatBody.Type
export type CompletionBody = typeof CompletionBody.Type
export type SamplingBody = Omit<CompletionBody, "prompt" | "logprobs" | "echo" | "suffix">

/** The sampling fields that the Messages and the Responses API have in common with chat. */
export const sharedFields = ({
  cache_salt = null,
  seed = null,
  stream = null,
  temperature = null,
  top_k = null,
  top_p = null
}: Pick<SamplingBody, "cache_salt" | "seed" | "stream" | "temperature" | "top_k" | "top_p">) => ({ cache_salt, seed, stream, temperature, top_k, top_p })

/** A function of these APIs as a tool of chat. */
export const functionTool = (
  name: string,
  description: string | null | undefined,
  parameters: Readonly<Record<string, unknown>> | null | undefined,
  strict: boolean | null | undefined
) => ({
  type: "function" as const,
  function: { name, description: description ?? null, parameters: parameters ?? null, ...(strict == null ? {} : { strict }) }
})

export type MessageBody = typeof Message.Type

/** Decodes a request body. Throws `ApiError` 400 with the path of the field in `param`. */
export const decodeBody = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, text: string): S["Type"] => {
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(schema))(text)
  if (Result.isSuccess(decoded)) return decoded.success
  const message = decoded.failure.message.replaceAll(/\s+/g, " ")
  throw badRequest(`1 validation error: ${message.slice(0, 500)}`, /at \["([^"]+)"\]/.exec(message)?.[1] ?? null)
}
