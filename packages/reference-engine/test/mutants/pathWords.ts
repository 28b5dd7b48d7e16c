import { type Fields, on, streamedOn, without } from "./body.ts"
import type { Mutants } from "./Mutant.ts"

const responses = "/v1/responses"
const messages = "/v1/messages"
const isMembers = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value)

/** Changes `tool_choice` of a message; requests without tools have none. */
const choice = (change: (choice: Fields) => Fields) => (fields: Fields) =>
  fields.tools === undefined ? fields : { ...fields, tool_choice: change(isMembers(fields.tool_choice) ? fields.tool_choice : { type: "auto" }) }

const taken = (value: string) => (fields: Fields) => (fields.tool_choice === value ? without("tool_choice")(fields) : fields)
const takenOf = (type: string) => choice((asked) => (asked.type === type ? { ...asked, type: "auto" } : asked))

const dropped = (name: string, mark: string) => (fields: Fields) => {
  const value = fields[name]
  return Array.isArray(value) ? { ...fields, [name]: value.filter((one) => !JSON.stringify(one).includes(mark)) } : fields
}

const count = "/v1/messages/count_tokens"

/** Keeps only the last message. */
const lastTurn = (name: string) => (fields: Fields) => {
  const turns = fields[name]
  return Array.isArray(turns) ? { ...fields, [name]: turns.slice(-1) } : fields
}

/** Keeps only the first text of each message. */
const firstParts = (name: string) => (fields: Fields) => {
  const turns = fields[name]
  const isText = (part: unknown) => isMembers(part) && typeof part.text === "string"
  const first = (turn: unknown) =>
    isMembers(turn) && Array.isArray(turn.content)
      ? { ...turn, content: turn.content.filter((part, at, all) => !isText(part) || all.findIndex(isText) === at) }
      : turn
  return Array.isArray(turns) ? { ...fields, [name]: turns.map(first) } : fields
}

const unbound = (fields: Fields): Fields => ({
  ...fields,
  ...(Array.isArray(fields.tools) ? { tools: fields.tools.map((tool) => (isMembers(tool) ? without("strict")(tool) : tool)) } : {})
})

/** Ignores a limit that is shorter than any reasoning. */
const unlimited = (name: string) => (fields: Fields) => {
  const limit = fields[name]
  return typeof limit === "number" && limit < 16 ? { ...fields, [name]: 500 } : fields
}

/** Faults in fields that only the Messages or the Responses API has. */
export const pathWordMutants: Mutants = {
  responses_required_as_auto: { spoils: "on /v1/responses tool_choice required is taken for auto", seams: on(responses, taken("required")) },
  responses_none_as_auto: { spoils: "on /v1/responses tool_choice none is taken for auto", seams: on(responses, taken("none")) },
  responses_single_ignored: { spoils: "/v1/responses does not obey parallel_tool_calls", seams: on(responses, without("parallel_tool_calls")) },
  responses_one_call_only: {
    spoils: "on /v1/responses only the first of several calls is read",
    seams: on(responses, (fields) => (fields.tools === undefined ? fields : { ...fields, parallel_tool_calls: false }))
  },
  responses_results_dropped: { spoils: "/v1/responses leaves out the results of functions", seams: on(responses, dropped("input", "function_call_output")) },
  responses_logprobs_dropped: { spoils: "/v1/responses does not obey include", seams: on(responses, without("include")) },
  responses_tops_dropped: { spoils: "/v1/responses does not obey top_logprobs", seams: on(responses, without("top_logprobs")) },
  responses_logprobs_not_streamed: { spoils: "/v1/responses does not obey include in streams", seams: streamedOn(responses, without("include")) },
  responses_salt_ignored: { spoils: "on /v1/responses a caller may share the cache of another caller's prompts", seams: on(responses, without("cache_salt")) },
  responses_turns_dropped: { spoils: "/v1/responses leaves out all turns but the last", seams: on(responses, lastTurn("input")) },
  responses_parts_first: { spoils: "/v1/responses reads only the first part of a turn", seams: on(responses, firstParts("input")) },
  messages_parts_first: { spoils: "/v1/messages reads only the first text of a turn", seams: on(messages, firstParts("messages")) },
  count_parts_first: { spoils: "/v1/messages/count_tokens reads only the first text of a turn", seams: on(count, firstParts("messages")) },
  responses_strict_ignored: { spoils: "/v1/responses does not obey strict", seams: on(responses, unbound) },
  responses_thought_unlimited: { spoils: "/v1/responses does not obey limits that would cut reasoning", seams: on(responses, unlimited("max_output_tokens")) },
  messages_salt_ignored: { spoils: "on /v1/messages a caller may share the cache of another caller's prompts", seams: on(messages, without("cache_salt")) },
  messages_turns_dropped: { spoils: "/v1/messages leaves out all turns but the last", seams: on(messages, lastTurn("messages")) },
  messages_strict_ignored: { spoils: "/v1/messages does not obey strict", seams: on(messages, unbound) },
  messages_thought_unlimited: { spoils: "/v1/messages does not obey limits that would cut reasoning", seams: on(messages, unlimited("max_tokens")) },
  count_turns_dropped: { spoils: "/v1/messages/count_tokens leaves out all turns but the last", seams: on(count, lastTurn("messages")) },
  count_choice_ignored: { spoils: "/v1/messages/count_tokens does not obey tool_choice", seams: on(count, without("tool_choice")) },
  count_toggle_ignored: {
    spoils: "/v1/messages/count_tokens counts as if thinking were on, for every request",
    seams: on(count, without("thinking", "chat_template_kwargs"))
  },
  responses_toggle_ignored: {
    spoils: "on /v1/responses a request to turn reasoning off is ignored",
    seams: on(responses, without("reasoning", "chat_template_kwargs"))
  },
  messages_any_as_auto: { spoils: "on /v1/messages tool_choice any is taken for auto", seams: on(messages, takenOf("any")) },
  messages_none_as_auto: { spoils: "on /v1/messages tool_choice none is taken for auto", seams: on(messages, takenOf("none")) },
  messages_single_ignored: {
    spoils: "/v1/messages does not obey disable_parallel_tool_use",
    seams: on(
      messages,
      choice((asked) => ({ ...asked, disable_parallel_tool_use: false }))
    )
  },
  messages_one_call_only: {
    spoils: "on /v1/messages only the first of several calls is read",
    seams: on(
      messages,
      choice((asked) => ({ ...asked, disable_parallel_tool_use: true }))
    )
  },
  messages_results_dropped: { spoils: "/v1/messages leaves out the results of functions", seams: on(messages, dropped("messages", "tool_result")) },
  messages_toggle_ignored: {
    spoils: "on /v1/messages a request to turn reasoning off is ignored",
    seams: on(messages, without("thinking", "chat_template_kwargs"))
  },
  count_system_dropped: { spoils: "/v1/messages/count_tokens leaves out the system text", seams: on(count, without("system")) },
  count_tools_dropped: { spoils: "/v1/messages/count_tokens leaves out the tools", seams: on(count, without("tools")) }
}
