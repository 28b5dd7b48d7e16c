import { advisory, anyMembers, type Check, list, members, sentBack, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"
import { functionName, pastArguments } from "./tools.ts"

const most = 100_000
const anything: Check = (value) => value

const input = members({ type: text, text, prompt_cache_breakpoint: advisory(anyMembers) }, ["text"])
const output = members({ type: text, text, annotations: advisory(anything), logprobs: advisory(anything), parsed: sentBack }, ["text"])
const refusalMembers = members({ type: text, refusal: text }, ["refusal"])
const detail: Check = (value, at) => (value === "auto" ? undefined : at.unsupportedValue("only auto is supported"))
const imageMembers = members(
  { type: text, image_url: (value, at) => (typeof value === "string" ? at.image(value) : at.invalid("expected a string")), detail },
  ["image_url"]
)
const image: Check = (value, at) =>
  at.target.capabilities.supports_image_input ? { ...imageMembers(value, at), detail: "auto" } : at.unsupportedValue("the model does not accept images", "type")

/** A string, or a list of parts of these kinds. */
const content = (kinds: Readonly<Record<string, Check>>): Check => {
  const parts = list(variant("type", kinds), 1, most)
  return (value, at) => {
    if (typeof value === "string") return value
    return Array.isArray(value) ? parts(value, at) : at.invalid("expected a string or a list of parts")
  }
}

const turn = { type: text, id: advisory(text), status: advisory(text), phase: advisory(text) }
const userContent = content({ input_text: input, input_image: image })
const textContent = content({ input_text: input })
/** Models do not support refusals, so a refusal becomes text. */
const assistantContent = content({
  input_text: input,
  output_text: output,
  refusal: (value, at) => ({ type: "output_text", text: refusalMembers(value, at).refusal })
})

const message = variant("role", {
  user: members({ ...turn, role: text, content: userContent }, ["content"]),
  system: members({ ...turn, role: text, content: textContent }, ["content"]),
  developer: members({ ...turn, role: (_: unknown, at: Checking) => (at.target.knowsDeveloper ? "developer" : "system"), content: textContent }, ["content"]),
  // Engines expect a message of the model as a plain text item.
  assistant: (value, at) => {
    const { content: parts, ...rest } = members({ ...turn, role: text, content: assistantContent }, ["content"])(value, at)
    return { ...rest, content: Array.isArray(parts) ? textOf(parts) : parts }
  }
})

const textOf = (parts: ReadonlyArray<unknown>): string => parts.map((part) => (isMembers(part) && typeof part.text === "string" ? part.text : "")).join("")

const withTools =
  (check: Check): Check =>
  (value, at) =>
    at.target.capabilities.tool_calling.tool_results ? check(value, at) : at.unsupportedValue("the model does not accept tool calls or results", "type")

const item: Check = variant("type", {
  message,
  function_call: withTools(
    members(
      { type: text, id: advisory(text), status: advisory(text), call_id: text, name: functionName, arguments: pastArguments, parsed_arguments: sentBack },
      ["call_id", "name", "arguments"]
    )
  ),
  function_call_output: withTools((value, at) => {
    const { output: parts, ...rest } = members(
      { type: text, id: advisory(text), status: advisory(text), call_id: text, name: advisory(text), output: textContent },
      ["call_id", "output"]
    )(value, at)
    return { ...rest, output: Array.isArray(parts) ? textOf(parts) : parts }
  }),
  // Reasoning of earlier turns is not stored, and its encrypted form cannot be read.
  reasoning: (value, at) => {
    members({
      type: text,
      id: text,
      status: text,
      summary: anything,
      content: anything,
      encrypted_content: text
    })(value, at)
    return null
  }
})

const items = list((value, at) => (isMembers(value) && value.type == null ? { type: "message", ...asMembers(message(value, at)) } : item(value, at)), 1, most)
const asMembers = (value: unknown) => (isMembers(value) ? value : {})

/** `input`: a string, or the items of a conversation. */
export const responsesInput: Check = (value, at) => {
  if (typeof value === "string") return value
  if (!Array.isArray(value)) return at.invalid("expected a string or a list of items")
  const checked = items(value, at)
  const sent = Array.isArray(checked) ? checked.filter((one) => one !== null) : []
  return sent.length > 0 ? sent : at.invalid("contains only reasoning, which is not sent to the model; add a message")
}
