import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Mutants } from "./Mutant.ts"

export type Fields = Readonly<Record<string, unknown>>
const decodeFields = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** Changes fields of the body. A body that is not a JSON object stays unchanged. */
const changed = (change: (fields: Fields, path: string) => Fields) => () => ({
  got: (path: string, body: string) => Option.match(decodeFields(body), { onNone: () => body, onSome: (fields) => JSON.stringify(change(fields, path)) })
})

/** Removes these fields. */
export const without =
  (...names: ReadonlyArray<string>) =>
  (fields: Fields) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

/** Changes requests on one path only. */
export const on = (path: string, change: (fields: Fields) => Fields) => changed((fields, asked) => (asked === path ? change(fields) : fields))

/** Changes streamed requests on one path only. */
export const streamedOn = (path: string, change: (fields: Fields) => Fields) => on(path, (fields) => (fields.stream === true ? change(fields) : fields))

const where = (name: string, test: (value: unknown) => boolean, change: (fields: Fields) => Fields) =>
  changed((fields) => (test(fields[name]) ? change(fields) : fields))

const plus = (value: unknown, more: number) => (typeof value === "number" ? value + more : value)

/** Faults in reading requests. */
export const bodyMutants: Mutants = {
  stop_ignored: { spoils: "stop strings are not obeyed", seams: changed(without("stop")) },
  stop_first_only: {
    spoils: "only the first of several stop strings is obeyed",
    seams: changed((fields) => (Array.isArray(fields.stop) ? { ...fields, stop: fields.stop.slice(0, 1) } : fields))
  },
  stop_ignored_in_texts: { spoils: "stop strings are not obeyed by /v1/completions", seams: on("/v1/completions", without("stop")) },
  stop_ignored_in_streamed_texts: {
    spoils: "stop strings are not obeyed by /v1/completions in streams",
    seams: streamedOn("/v1/completions", without("stop"))
  },
  texts_limit_ignored: { spoils: "/v1/completions does not obey max_tokens", seams: on("/v1/completions", without("max_tokens")) },
  texts_usage_not_streamed: { spoils: "streams of /v1/completions have no usage chunk", seams: on("/v1/completions", without("stream_options")) },
  texts_logprobs_dropped: { spoils: "texts have no log-probabilities", seams: on("/v1/completions", without("logprobs")) },
  logprobs_not_streamed: {
    spoils: "streams have no log-probabilities",
    seams: changed((fields) => (fields.stream === true ? without("logprobs", "top_logprobs")(fields) : fields))
  },
  chat_n_ignored_streamed: { spoils: "the n of streamed messages is not obeyed", seams: streamedOn("/v1/chat/completions", without("n")) },
  texts_n_ignored_streamed: { spoils: "the n of streamed texts is not obeyed", seams: streamedOn("/v1/completions", without("n")) },
  chat_temperature_ignored: {
    spoils: "the temperature of messages is always 0",
    seams: on("/v1/chat/completions", (fields) => ({ ...fields, temperature: 0 }))
  },
  chat_seed_ignored: {
    spoils: "the seed of messages is not obeyed",
    seams: () => {
      const count = { requests: 0 }
      return on("/v1/chat/completions", (fields) => ({ ...fields, seed: ++count.requests * 7_919 }))()
    }
  },
  chat_limit_ignored: { spoils: "max_completion_tokens is not obeyed", seams: changed(without("max_completion_tokens")) },
  chat_logprobs_dropped: { spoils: "messages have no log-probabilities", seams: on("/v1/chat/completions", without("logprobs", "top_logprobs")) },
  responses_limit_ignored: { spoils: "/v1/responses does not obey max_output_tokens", seams: on("/v1/responses", without("max_output_tokens")) },
  responses_temperature_ignored: {
    spoils: "the temperature of /v1/responses is always 0",
    seams: on("/v1/responses", (fields) => ({ ...fields, temperature: 0 }))
  },
  messages_temperature_ignored: {
    spoils: "the temperature of /v1/messages is always 0",
    seams: on("/v1/messages", (fields) => ({ ...fields, temperature: 0 }))
  },
  responses_instructions_dropped: { spoils: "/v1/responses leaves out the instructions", seams: on("/v1/responses", without("instructions")) },
  responses_tools_dropped: { spoils: "/v1/responses leaves out the tools", seams: on("/v1/responses", without("tools", "tool_choice")) },
  messages_system_dropped: { spoils: "/v1/messages leaves out the system text", seams: on("/v1/messages", without("system")) },
  messages_tools_dropped: { spoils: "/v1/messages leaves out the tools", seams: on("/v1/messages", without("tools", "tool_choice")) },
  messages_stop_ignored: { spoils: "/v1/messages does not obey stop_sequences", seams: on("/v1/messages", without("stop_sequences")) },
  messages_stop_ignored_streamed: {
    spoils: "/v1/messages does not obey stop_sequences in streams",
    seams: streamedOn("/v1/messages", without("stop_sequences"))
  },
  texts_form_ignored_streamed: {
    spoils: "/v1/completions does not obey response_format in streams",
    seams: streamedOn("/v1/completions", without("response_format"))
  },
  responses_form_ignored_streamed: { spoils: "/v1/responses does not obey text.format in streams", seams: streamedOn("/v1/responses", without("text")) },
  messages_form_ignored_streamed: {
    spoils: "/v1/messages does not obey output_config.format in streams",
    seams: streamedOn("/v1/messages", without("output_config"))
  },
  texts_form_ignored: { spoils: "/v1/completions does not obey response_format", seams: on("/v1/completions", without("response_format")) },
  texts_object_ignored: {
    spoils: "/v1/completions does not obey response_format json_object",
    seams: on("/v1/completions", (fields) =>
      JSON.stringify(fields.response_format ?? "").includes('"json_object"') ? without("response_format")(fields) : fields
    )
  },
  responses_form_ignored: { spoils: "/v1/responses does not obey text.format", seams: on("/v1/responses", without("text")) },
  messages_form_ignored: { spoils: "/v1/messages does not obey output_config.format", seams: on("/v1/messages", without("output_config")) },
  echo_ignored: { spoils: "/v1/completions does not repeat the prompt if echo asks for it", seams: on("/v1/completions", without("echo")) },
  prompts_all_first: {
    spoils: "all of several prompts get the answer to the first",
    seams: on("/v1/completions", (fields) => {
      const { prompt } = fields
      if (!Array.isArray(prompt) || typeof prompt[0] === "number") return fields
      return { ...fields, prompt: prompt.map(() => prompt[0]) }
    })
  },
  prompts_reversed: {
    spoils: "each of several prompts has the answer to another one",
    seams: on("/v1/completions", (fields) => {
      const { prompt } = fields
      return !Array.isArray(prompt) || typeof prompt[0] === "number" ? fields : { ...fields, prompt: prompt.toReversed() }
    })
  },
  chat_n_ignored: { spoils: "the n of messages is not obeyed", seams: on("/v1/chat/completions", without("n")) },
  chat_bias_ignored: { spoils: "the logit_bias of messages is not obeyed", seams: on("/v1/chat/completions", without("logit_bias")) },
  chat_top_k_ignored: { spoils: "the top_k of messages is not obeyed", seams: on("/v1/chat/completions", without("top_k")) },
  chat_top_p_ignored: { spoils: "the top_p of messages is not obeyed", seams: on("/v1/chat/completions", without("top_p")) },
  chat_min_p_ignored: { spoils: "the min_p of messages is not obeyed", seams: on("/v1/chat/completions", without("min_p")) },
  chat_penalties_ignored: {
    spoils: "the penalties of messages are not obeyed",
    seams: on("/v1/chat/completions", without("presence_penalty", "frequency_penalty", "repetition_penalty"))
  },
  responses_top_p_ignored: { spoils: "the top_p of /v1/responses is not obeyed", seams: on("/v1/responses", without("top_p")) },
  messages_top_p_ignored: { spoils: "the top_p of /v1/messages is not obeyed", seams: on("/v1/messages", without("top_p")) },
  messages_top_k_ignored: { spoils: "the top_k of /v1/messages is not obeyed", seams: on("/v1/messages", without("top_k")) },
  responses_choice_ignored: { spoils: "/v1/responses does not obey tool_choice", seams: on("/v1/responses", without("tool_choice")) },
  messages_choice_ignored: { spoils: "/v1/messages does not obey tool_choice", seams: on("/v1/messages", without("tool_choice")) },
  ignore_eos_ignored: { spoils: "ignore_eos is not obeyed", seams: changed(without("ignore_eos")) },
  max_tokens_more: {
    spoils: "answers may be one token longer than requested",
    seams: changed((fields) => ({ ...fields, ...(fields.max_tokens === undefined ? {} : { max_tokens: plus(fields.max_tokens, 1) }) }))
  },
  answers_cut_at_128: {
    spoils: "answers end after 128 tokens, as if that were requested",
    seams: changed((fields) => (typeof fields.max_tokens === "number" ? { ...fields, max_tokens: Math.min(fields.max_tokens, 128) } : fields))
  },
  response_format_ignored: { spoils: "response_format is not obeyed", seams: changed(without("response_format")) },
  json_object_ignored: {
    spoils: "response_format json_object is not obeyed",
    seams: where("response_format", (format) => JSON.stringify(format ?? "").includes('"json_object"'), without("response_format"))
  },
  schema_as_object: {
    spoils: "a JSON schema is taken for any object",
    seams: where(
      "response_format",
      (format) => JSON.stringify(format ?? "").includes('"json_schema"'),
      (fields) => ({ ...fields, response_format: { type: "json_object" } })
    )
  },
  tools_ignored: { spoils: "tools are ignored", seams: changed(without("tools", "tool_choice", "parallel_tool_calls")) },
  n_ignored: { spoils: "n is not obeyed", seams: changed(without("n")) },
  required_as_auto: {
    spoils: "tool_choice required is taken for auto",
    seams: where("tool_choice", (choice) => choice === "required", without("tool_choice"))
  },
  named_as_required: {
    spoils: "a function that is requested by name may be any function",
    seams: where(
      "tool_choice",
      (choice) => typeof choice === "object" && choice !== null,
      (fields) => ({ ...fields, tools: Array.isArray(fields.tools) ? [...fields.tools].reverse() : fields.tools, tool_choice: "required" })
    )
  },
  none_as_auto: { spoils: "tool_choice none is taken for auto", seams: where("tool_choice", (choice) => choice === "none", without("tool_choice")) },
  one_call_only: {
    spoils: "only the first of several calls is read",
    seams: changed((fields) => (fields.tools === undefined ? fields : { ...fields, parallel_tool_calls: false }))
  },
  single_ignored: { spoils: "parallel_tool_calls is not obeyed", seams: changed(without("parallel_tool_calls")) },
  results_dropped: {
    spoils: "the results of functions are left out of the conversation",
    seams: changed((fields) => ({
      ...fields,
      ...(Array.isArray(fields.messages) ? { messages: fields.messages.filter((message) => !JSON.stringify(message).includes('"role":"tool"')) } : {})
    }))
  },
  user_turns_last: {
    spoils: "of consecutive turns of the user only the last one is read",
    seams: changed((fields) => {
      const { messages } = fields
      if (!Array.isArray(messages)) return fields
      const isUser = (turn: unknown) => JSON.stringify(turn ?? null).includes('"role":"user"')
      return { ...fields, messages: messages.filter((turn, at) => !isUser(turn) || !isUser(messages[at + 1])) }
    })
  },
  any_model_name: { spoils: "any name is taken for the model's", seams: changed(without("model")) },
  bad_values_taken: {
    spoils: "invalid limits are ignored",
    seams: changed((fields) => {
      const { max_tokens, temperature, top_p, ...rest } = fields
      const defaults = {
        ...(typeof max_tokens === "number" && max_tokens > 0 ? { max_tokens } : {}),
        ...(typeof temperature === "number" && temperature >= 0 ? { temperature } : {})
      }
      return { ...rest, ...defaults, ...(typeof top_p === "number" && top_p > 0 && top_p <= 1 ? { top_p } : {}) }
    })
  },
  usage_not_streamed: { spoils: "streams have no usage chunk", seams: changed(without("stream_options")) }
}
