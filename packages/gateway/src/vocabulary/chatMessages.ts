import { advisory, anyMembers, type Check, list, members, sentBack, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { imageUrl } from "./imageUrl.ts"
import { pastCalls } from "./tools.ts"

const most = 100_000

/** Cache hints have no effect: engines decide what they cache. */
const breakpoint = advisory(anyMembers)

const textPart = members({ type: text, text, prompt_cache_breakpoint: breakpoint }, ["text"])

const refusalMembers = members({ type: text, refusal: text }, ["refusal"])
/** Chat templates do not support refusals, so a refusal becomes text. */
const refusalPart: Check = (value, at) => ({ type: "text", text: refusalMembers(value, at).refusal })

const imagePart: Check = (value, at) =>
  at.target.capabilities.supports_image_input ? imageMembers(value, at) : at.unsupportedValue("the model does not accept images", "type")
const imageMembers = members({ type: text, image_url: imageUrl, prompt_cache_breakpoint: breakpoint }, ["image_url"])

/** A string, or a list of parts of these kinds. */
const content = (kinds: Readonly<Record<string, Check>>): Check => {
  const parts = list(variant("type", kinds), 1, most)
  return (value, at) => {
    if (typeof value === "string") return value
    return Array.isArray(value) ? parts(value, at) : at.invalid("expected a string or a list of parts")
  }
}
const textContent = content({ text: textPart })

const developerRole = (_: unknown, at: Checking) => (at.target.knowsDeveloper ? "developer" : "system")

const assistantMembers = members({
  role: text,
  content: content({ text: textPart, refusal: refusalPart }),
  name: text,
  refusal: text,
  reasoning: text,
  reasoning_content: text,
  tool_calls: pastCalls,
  // Answers contain annotations, and callers send them back unchanged.
  annotations: advisory(list((value) => value, 0, most)),
  parsed: sentBack
})

/** A message of the model. */
const assistant: Check = (value, at) => {
  const { reasoning, reasoning_content, refusal, ...turn } = assistantMembers(value, at)
  const turnContent = turn.content ?? refusal
  if (turnContent === undefined && turn.tool_calls === undefined) return at.invalid("is required", "content")
  if (turnContent !== undefined) turn.content = turnContent
  const thought = reasoning_content ?? reasoning
  if (thought !== undefined) turn[at.target.wire.reasoningField] = thought
  return turn
}

const toolMembers = members({ role: text, content: textContent, tool_call_id: text, name: text }, ["content", "tool_call_id"])

const message = variant("role", {
  system: members({ role: text, content: textContent, name: text }, ["content"]),
  developer: members({ role: developerRole, content: textContent, name: text }, ["content"]),
  user: members({ role: text, content: content({ text: textPart, image_url: imagePart }), name: text }, ["content"]),
  assistant,
  tool: (value, at) =>
    at.target.capabilities.tool_calling.tool_results ? toolMembers(value, at) : at.unsupportedValue("the model does not accept tool results", "role")
})

/** The messages of a conversation. */
export const chatMessages = list(message, 1, most)
