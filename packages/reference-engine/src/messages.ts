import { optionalNullable } from "@seatrial/domain"
import * as Schema from "effect/Schema"
import type { ChatTemplate } from "./ChatTemplate.ts"
import type { Engine } from "./Generation.ts"
import { atLeast, badRequest, type ChatBody, decodeBody, functionTool, Name, sampling, sharedFields } from "./Protocol.ts"
import { type Conversation, converse } from "./Routes.ts"
import type { Speech } from "./Speech.ts"

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const Block = Schema.Union([
  TextBlock,
  Schema.Struct({ type: Schema.Literal("tool_use"), id: Schema.String, name: Name, input: Schema.Record(Schema.String, Schema.Unknown) }),
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    tool_use_id: Schema.String,
    content: optionalNullable(Schema.Union([Schema.String, Schema.Array(TextBlock)]))
  }),
  Schema.Struct({ type: Schema.Literals(["thinking", "redacted_thinking"]) })
])
const Tool = Schema.Struct({
  name: Name,
  type: optionalNullable(Schema.Literal("custom")),
  description: optionalNullable(Schema.String),
  input_schema: Schema.Record(Schema.String, Schema.Unknown),
  strict: optionalNullable(Schema.Boolean)
})

const conversation = {
  model: sampling.model,
  messages: Schema.Array(
    Schema.Struct({ role: Schema.Literals(["user", "assistant", "system"]), content: Schema.Union([Schema.String, Schema.Array(Block)]) })
  ).check(Schema.isMinLength(1)),
  system: optionalNullable(Schema.Union([Schema.String, Schema.Array(TextBlock)])),
  tools: optionalNullable(Schema.Array(Tool).check(Schema.isMaxLength(128))),
  tool_choice: optionalNullable(
    Schema.Struct({
      type: Schema.Literals(["auto", "any", "tool", "none"]),
      name: optionalNullable(Schema.String),
      disable_parallel_tool_use: optionalNullable(Schema.Boolean)
    })
  ),
  thinking: optionalNullable(Schema.Struct({ type: Schema.Literals(["adaptive", "disabled", "enabled"]) })),
  chat_template_kwargs: optionalNullable(Schema.Record(Schema.String, Schema.Unknown))
}

/** Request bodies as vLLM accepts them. Fields that vLLM ignores are ignored. */
const MessagesBody = Schema.Struct({
  ...conversation,
  max_tokens: atLeast(1),
  stop_sequences: sampling.stop,
  stream: sampling.stream,
  temperature: sampling.temperature,
  top_p: sampling.top_p,
  top_k: sampling.top_k,
  seed: sampling.seed,
  cache_salt: sampling.cache_salt,
  output_config: optionalNullable(
    Schema.Struct({
      format: optionalNullable(Schema.Struct({ type: Schema.Literal("json_schema"), schema: Schema.Record(Schema.String, Schema.Unknown) }))
    })
  )
})
const CountBody = Schema.Struct(conversation)

const textOf = (content: string | ReadonlyArray<{ readonly text: string }> | null | undefined): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text).join("")

type Messages = ChatBody["messages"]

/** Converts one message to chat messages. Tool results come before the other content. */
const turnsOf = ({ content, role }: (typeof CountBody.Type)["messages"][number]): Messages => {
  if (typeof content === "string") return [{ role, content }]
  const results = content.flatMap((block) =>
    block.type === "tool_result" ? [{ role: "tool", tool_call_id: block.tool_use_id, content: textOf(block.content) }] : []
  )
  const texts = content.flatMap((block) => (block.type === "text" ? [{ type: "text" as const, text: block.text }] : []))
  const calls = content.flatMap((block) => (block.type === "tool_use" ? [{ id: block.id, function: { name: block.name, arguments: block.input } }] : []))
  if (texts.length === 0 && calls.length === 0) return results
  return [...results, { role, content: texts, ...(calls.length === 0 ? {} : { tool_calls: calls }) }]
}

const choiceOf = ({ name, type }: NonNullable<(typeof CountBody.Type)["tool_choice"]>): NonNullable<ChatBody["tool_choice"]> => {
  if (type === "auto" || type === "none") return type
  if (type === "any") return "required"
  if (name == null) throw badRequest("tool_choice.name is required", "tool_choice")
  return { type: "function", function: { name } }
}

const chatOf = ({ chat_template_kwargs, messages, model, system, thinking, tool_choice, tools }: typeof CountBody.Type): ChatBody => ({
  model: model ?? null,
  messages: [...(system == null ? [] : [{ role: "system", content: textOf(system) }]), ...messages.flatMap(turnsOf)],
  chat_template_kwargs: { ...(thinking?.type === "disabled" ? { enable_thinking: false } : {}), ...chat_template_kwargs },
  ...(tools == null || tools.length === 0
    ? {}
    : {
        tools: tools.map(({ description, input_schema, name, strict }) => functionTool(name, description, input_schema, strict)),
        ...(tool_choice == null ? {} : { tool_choice: choiceOf(tool_choice), parallel_tool_calls: tool_choice.disable_parallel_tool_use !== true })
      })
})

/** A request to the Messages or Responses API, converted to a chat conversation. */
export interface ConversationRequest extends Conversation {
  readonly body: ChatBody
}

/** `POST /v1/messages`. */
export const askMessage = (engine: Engine, template: ChatTemplate, speech: Speech, text: string): ConversationRequest => {
  const request = decodeBody(MessagesBody, text)
  const { max_tokens, output_config, stop_sequences } = request
  const schema = output_config?.format?.schema
  const body: ChatBody = {
    ...chatOf(request),
    ...sharedFields(request),
    max_tokens,
    stop: stop_sequences ?? null,
    ...(schema === undefined ? {} : { response_format: { type: "json_schema", json_schema: { schema } } })
  }
  return { body, ...converse(engine, template, speech, body, "/v1/messages") }
}

/** `POST /v1/messages/count_tokens`. */
export const countTokens = (engine: Engine, template: ChatTemplate, speech: Speech, text: string) => {
  const { plan } = converse(engine, template, speech, chatOf(decodeBody(CountBody, text)), "/v1/messages/count_tokens")
  return { input_tokens: engine.seams.counted?.(plan.prompt.length) ?? plan.prompt.length }
}
