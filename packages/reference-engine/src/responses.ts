import { optionalNullable } from "@seatrial/domain"
import * as Schema from "effect/Schema"
import type { ChatTemplate } from "./ChatTemplate.ts"
import type { Engine } from "./Generation.ts"
import type { ConversationRequest } from "./messages.ts"
import { atLeast, badRequest, type ChatBody, decodeBody, functionTool, Name, sampling, sharedFields } from "./Protocol.ts"
import { converse } from "./Routes.ts"
import type { Speech } from "./Speech.ts"

const Parts = Schema.Union([Schema.String, Schema.Array(Schema.Struct({ type: Schema.Literals(["input_text", "output_text", "text"]), text: Schema.String }))])
const Item = Schema.Union([
  Schema.Struct({ type: Schema.Literal("function_call"), call_id: Schema.String, name: Name, arguments: Schema.String }),
  Schema.Struct({ type: Schema.Literal("function_call_output"), call_id: Schema.String, output: Parts }),
  Schema.Struct({ type: Schema.Literal("reasoning") }),
  Schema.Struct({ type: optionalNullable(Schema.Literal("message")), role: Schema.Literals(["user", "assistant", "system", "developer"]), content: Parts })
])

/** Request bodies as vLLM accepts them. Fields that vLLM ignores are ignored. */
const ResponsesBody = Schema.Struct({
  model: sampling.model,
  input: Schema.Union([Schema.String, Schema.Array(Item).check(Schema.isMinLength(1))]),
  instructions: optionalNullable(Schema.String),
  max_output_tokens: optionalNullable(atLeast(1)),
  temperature: sampling.temperature,
  top_p: sampling.top_p,
  top_k: sampling.top_k,
  repetition_penalty: sampling.repetition_penalty,
  seed: sampling.seed,
  stream: sampling.stream,
  cache_salt: sampling.cache_salt,
  request_id: optionalNullable(Schema.String),
  top_logprobs: optionalNullable(atLeast(0)),
  include: optionalNullable(Schema.Array(Schema.String)),
  tools: optionalNullable(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        name: Name,
        description: optionalNullable(Schema.String),
        parameters: optionalNullable(Schema.Record(Schema.String, Schema.Unknown)),
        strict: optionalNullable(Schema.Boolean)
      })
    ).check(Schema.isMaxLength(128))
  ),
  tool_choice: optionalNullable(
    Schema.Union([Schema.Literals(["none", "auto", "required"]), Schema.Struct({ type: Schema.Literal("function"), name: Schema.String })])
  ),
  parallel_tool_calls: optionalNullable(Schema.Boolean),
  text: optionalNullable(
    Schema.Struct({
      format: optionalNullable(
        Schema.Union([
          Schema.Struct({ type: Schema.Literals(["text", "json_object"]) }),
          Schema.Struct({ type: Schema.Literal("json_schema"), schema: Schema.Record(Schema.String, Schema.Unknown) })
        ])
      )
    })
  ),
  reasoning: optionalNullable(Schema.Struct({ effort: optionalNullable(Schema.String) })),
  chat_template_kwargs: optionalNullable(Schema.Record(Schema.String, Schema.Unknown))
})

const textOf = (parts: string | ReadonlyArray<{ readonly text: string }>) => (typeof parts === "string" ? parts : parts.map(({ text }) => text).join(""))

type Request = typeof ResponsesBody.Type
type Messages = ChatBody["messages"]

const turnsOf = (items: ReadonlyArray<typeof Item.Type>): Messages => {
  const turns: Array<Messages[number]> = []
  for (const item of items) {
    if (item.type === "reasoning") continue
    if (item.type === "function_call_output") {
      turns.push({ role: "tool", tool_call_id: item.call_id, content: textOf(item.output) })
    } else if (item.type === "function_call") {
      const call = { id: item.call_id, function: { name: item.name, arguments: item.arguments } }
      const last = turns.at(-1)
      // The calls of one answer and the text before them belong to one message.
      if (last?.role === "assistant") turns[turns.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] }
      else turns.push({ role: "assistant", content: "", tool_calls: [call] })
    } else {
      turns.push({ role: item.role === "developer" ? "system" : item.role, content: textOf(item.content) })
    }
  }
  return turns
}

const formatOf = (format: NonNullable<NonNullable<Request["text"]>["format"]>): NonNullable<ChatBody["response_format"]> =>
  "schema" in format ? { type: "json_schema", json_schema: { schema: format.schema } } : format

const messagesOf = ({ input, instructions }: Request): Messages => [
  ...(instructions == null ? [] : [{ role: "system", content: instructions }]),
  ...(typeof input === "string" ? [{ role: "user", content: input }] : turnsOf(input))
]

/** An effort sets the switch of the template, as in vLLM. */
const templateSettings = ({ chat_template_kwargs, reasoning }: Request) => ({
  ...(reasoning?.effort == null ? {} : { enable_thinking: reasoning.effort !== "none", reasoning_effort: reasoning.effort }),
  ...chat_template_kwargs
})

const choiceOf = (choice: NonNullable<Request["tool_choice"]>): NonNullable<ChatBody["tool_choice"]> =>
  typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } }

const toolFields = ({ parallel_tool_calls = null, tool_choice, tools }: Request): Pick<ChatBody, "parallel_tool_calls" | "tool_choice" | "tools"> =>
  tools == null || tools.length === 0
    ? {}
    : {
        tools: tools.map(({ description, name, parameters, strict }) => functionTool(name, description, parameters, strict)),
        ...(tool_choice == null ? {} : { tool_choice: choiceOf(tool_choice) }),
        parallel_tool_calls
      }

/** A request for a response, with the members that the response repeats. */
export interface ResponseRequest extends ConversationRequest {
  readonly request: Request
}

/** `POST /v1/responses`. Nothing is stored. */
export const askResponse = (engine: Engine, template: ChatTemplate, speech: Speech, text: string): ResponseRequest => {
  const request = decodeBody(ResponsesBody, text)
  const logprobs = request.include?.includes("message.output_text.logprobs") === true
  if (logprobs && request.stream === true && speech.promptIdsInChoice) throw badRequest("logprobs are not available when `stream=True`.", "include")
  const format = request.text?.format
  const body: ChatBody = {
    model: request.model ?? null,
    messages: messagesOf(request),
    ...sharedFields(request),
    max_tokens: request.max_output_tokens ?? null,
    repetition_penalty: request.repetition_penalty ?? null,
    chat_template_kwargs: templateSettings(request),
    logprobs,
    ...(logprobs ? { top_logprobs: request.top_logprobs ?? 0 } : {}),
    ...(format == null ? {} : { response_format: formatOf(format) }),
    ...toolFields(request)
  }
  return { request, body, ...converse(engine, template, speech, body, "/v1/responses") }
}
