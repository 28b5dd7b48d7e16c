import type { InferencePath } from "@seatrial/domain"
import { Result, Schema } from "effect"

// Written independently of the gateway's tables, so that it detects gaps in them.
const optional = Schema.optionalKey
const integer = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const number = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const text = Schema.String
const list = <S extends Schema.Constraint>(item: S, minimum: number, maximum: number) => Schema.Array(item).check(Schema.isBetweenLength(minimum, maximum))
const anyMembers = Schema.Record(Schema.String, Schema.Unknown)
const functionName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/))

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text })
const TextContent = Schema.Union([text, list(TextPart, 1, 100_000)])
const PastCall = Schema.Struct({ id: text, type: Schema.Literal("function"), function: Schema.Struct({ name: functionName, arguments: text }) })
const Message = Schema.Union([
  Schema.Struct({ role: Schema.Literals(["system", "user"]), content: TextContent, name: optional(text) }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: optional(TextContent),
    name: optional(text),
    reasoning_content: optional(text),
    tool_calls: optional(list(PastCall, 1, 128))
  }),
  Schema.Struct({ role: Schema.Literal("tool"), content: TextContent, tool_call_id: text, name: optional(text) })
])
const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: functionName, description: optional(text), parameters: optional(anyMembers), strict: optional(Schema.Boolean) })
})

const shared = {
  model: Schema.Literal("acme/tiny"),
  cache_salt: Schema.String.check(Schema.isPattern(/^[\w-]{43}$/)),
  stream: optional(Schema.Literal(true)),
  stream_options: optional(Schema.Struct({ include_usage: Schema.Literal(true), continuous_usage_stats: Schema.Literal(true) })),
  max_tokens: optional(integer(1, 2_048)),
  temperature: optional(number(0, 2)),
  top_p: optional(number(0, 1)),
  top_k: optional(integer(-1, 1_000_000)),
  min_p: optional(number(0, 1)),
  presence_penalty: optional(number(-2, 2)),
  frequency_penalty: optional(number(-2, 2)),
  repetition_penalty: optional(number(0, 2)),
  n: optional(integer(2, 8)),
  seed: optional(Schema.Finite),
  stop: optional(Schema.Union([Schema.NonEmptyString, list(Schema.NonEmptyString, 1, 4)])),
  logit_bias: optional(Schema.Record(Schema.String.check(Schema.isPattern(/^\d{1,9}$/)), number(-100, 100))),
  response_format: optional(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("json_object") }),
      Schema.Struct({
        type: Schema.Literal("json_schema"),
        json_schema: Schema.Struct({ name: functionName, description: optional(text), schema: anyMembers, strict: optional(Schema.Boolean) })
      })
    ])
  )
}

const Chat = Schema.Struct({
  ...shared,
  messages: list(Message, 1, 100_000),
  max_completion_tokens: optional(integer(1, 2_048)),
  logprobs: optional(Schema.Boolean),
  top_logprobs: optional(integer(0, 20)),
  tools: optional(list(Tool, 1, 128)),
  tool_choice: optional(
    Schema.Union([
      Schema.Literals(["auto", "required", "none"]),
      Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: functionName }) })
    ])
  ),
  parallel_tool_calls: optional(Schema.Boolean),
  reasoning_effort: optional(Schema.Literals(["low", "high"])),
  chat_template_kwargs: optional(Schema.Struct({ enable_thinking: optional(Schema.Boolean), thinking: optional(Schema.Boolean) })),
  thinking_token_budget: optional(integer(0, 1_000_000_000))
})

const Token = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Prompt = Schema.Union([text, list(Token, 1, 1_000_000)])
const Completion = Schema.Struct({
  ...shared,
  prompt: Schema.Union([Prompt, list(Prompt, 1, 8)]),
  echo: optional(Schema.Boolean),
  logprobs: optional(integer(0, 5))
})

const flatTool = Schema.Struct({
  type: Schema.Literal("function"),
  name: functionName,
  description: optional(text),
  parameters: optional(anyMembers),
  strict: optional(Schema.Boolean)
})
const InputPart = Schema.Struct({ type: Schema.Literals(["input_text", "output_text"]), text })
const Item = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("message"),
    role: Schema.Literals(["user", "system", "assistant"]),
    content: Schema.Union([text, list(InputPart, 1, 100_000)])
  }),
  Schema.Struct({ type: Schema.Literal("function_call"), call_id: text, name: functionName, arguments: text }),
  Schema.Struct({ type: Schema.Literal("function_call_output"), call_id: text, output: text })
])
const Response = Schema.Struct({
  model: shared.model,
  cache_salt: shared.cache_salt,
  request_id: Schema.String.check(Schema.isPattern(/^resp_req_\w+$/)),
  store: Schema.Literal(false),
  input: Schema.Union([text, Schema.Array(Item)]),
  instructions: optional(text),
  max_output_tokens: optional(integer(1, 2_048)),
  stream: shared.stream,
  temperature: shared.temperature,
  top_p: shared.top_p,
  top_logprobs: optional(integer(0, 20)),
  include: optional(Schema.Tuple([Schema.Literal("message.output_text.logprobs")])),
  tools: optional(list(flatTool, 1, 128)),
  tool_choice: optional(Schema.Union([Schema.Literals(["auto", "required", "none"]), Schema.Struct({ type: Schema.Literal("function"), name: functionName })])),
  parallel_tool_calls: optional(Schema.Boolean),
  chat_template_kwargs: optional(Schema.Struct({ enable_thinking: Schema.Literal(false), thinking: Schema.Literal(false) })),
  text: optional(
    Schema.Struct({
      format: Schema.Union([
        Schema.Struct({ type: Schema.Literal("json_object") }),
        Schema.Struct({
          type: Schema.Literal("json_schema"),
          name: functionName,
          description: optional(text),
          schema: anyMembers,
          strict: optional(Schema.Boolean)
        })
      ])
    })
  ),
  reasoning: optional(Schema.Struct({ effort: Schema.Literals(["low", "high", "none"]) }))
})

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text })
const Block = Schema.Union([
  TextBlock,
  Schema.Struct({ type: Schema.Literal("tool_use"), id: text, name: functionName, input: anyMembers }),
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    tool_use_id: text,
    content: optional(Schema.Union([text, Schema.Array(TextBlock)])),
    is_error: optional(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("thinking"), thinking: text })
])
const conversation = {
  model: shared.model,
  cache_salt: shared.cache_salt,
  messages: Schema.Array(Schema.Struct({ role: Schema.Literals(["user", "assistant"]), content: Schema.Union([text, Schema.Array(Block)]) })),
  system: optional(Schema.Union([text, Schema.Array(TextBlock)])),
  tools: optional(list(Schema.Struct({ name: functionName, description: optional(text), input_schema: anyMembers, strict: optional(Schema.Boolean) }), 1, 128)),
  tool_choice: optional(
    Schema.Union([
      Schema.Struct({ type: Schema.Literals(["auto", "any"]), disable_parallel_tool_use: optional(Schema.Literal(true)) }),
      Schema.Struct({ type: Schema.Literal("none") }),
      Schema.Struct({ type: Schema.Literal("tool"), name: functionName, disable_parallel_tool_use: optional(Schema.Literal(true)) })
    ])
  ),
  thinking: optional(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("disabled") }),
      Schema.Struct({ type: Schema.Literal("enabled"), budget_tokens: integer(1_024, 2 ** 53 - 1) })
    ])
  ),
  chat_template_kwargs: optional(Schema.Struct({ enable_thinking: Schema.Literal(false), thinking: Schema.Literal(false) })),
  output_config: optional(
    Schema.Struct({
      effort: optional(Schema.Literals(["low", "high", "none"])),
      format: optional(Schema.Struct({ type: Schema.Literal("json_schema"), schema: anyMembers }))
    })
  )
}
const Messages = Schema.Struct({
  ...conversation,
  max_tokens: integer(1, 2_048),
  stop_sequences: optional(list(Schema.NonEmptyString, 1, 4)),
  stream: shared.stream,
  temperature: optional(number(0, 1)),
  top_p: shared.top_p,
  top_k: optional(integer(1, 1_000_000))
})

const read = (schema: Schema.ConstraintDecoder<unknown>) => Schema.decodeUnknownResult(Schema.fromJsonString(schema), { onExcessProperty: "error" })
const readers: Readonly<Record<InferencePath, ReturnType<typeof read>>> = {
  "/v1/chat/completions": read(Chat),
  "/v1/completions": read(Completion),
  "/v1/responses": read(Response),
  "/v1/messages": read(Messages),
  "/v1/messages/count_tokens": read(Schema.Struct(conversation))
}

/** The part of an engine's body that is not in the vocabulary; null if there is none. */
export const issueOf = (path: InferencePath, body: string): string | null => {
  const result = readers[path](body)
  return Result.isFailure(result) ? result.failure.message : null
}
