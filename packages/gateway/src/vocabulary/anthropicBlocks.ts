import { advisory, anyMembers, boolean, type Check, list, members, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"
import { functionName } from "./tools.ts"

const most = 100_000

/** Cache hints have no effect: engines decide what they cache. */
export const cacheControl: Check = advisory(anyMembers)

const textBlock = members({ type: text, text, cache_control: cacheControl, citations: advisory((value) => value) }, ["text"])

const base64Source = members({ type: text, media_type: text, data: text }, ["media_type", "data"])
const urlSource = members({ type: text, url: text }, ["url"])

const source: Check = variant("type", {
  base64: (value, at) => {
    const { data, media_type } = base64Source(value, at)
    return placed(at, `data:${media_type};base64,${data}`, "data")
  },
  url: (value, at) => placed(at, String(urlSource(value, at).url), "url")
})

/** Adds the image and returns its placeholders in the engine's body. */
const placed = (at: Checking, url: string, member: string) => {
  const place = at.image(url, member)
  return { type: "base64", media_type: `${place}:type`, data: `${place}:data` }
}

const imageMembers = members({ type: text, source, cache_control: cacheControl }, ["source"])
const imageBlock: Check = (value, at) =>
  at.target.capabilities.supports_image_input ? imageMembers(value, at) : at.unsupportedValue("the model does not accept images", "type")

const requireToolSupport: Check = (_, at) =>
  at.target.capabilities.tool_calling.tool_results ? undefined : at.unsupportedValue("the model does not accept tool calls or results", "type")

const toolUse = members({ type: text, id: text, name: functionName, input: anyMembers, cache_control: cacheControl, caller: advisory(anyMembers) }, [
  "id",
  "name",
  "input"
])

const resultBlocks = list(variant("type", { text: textBlock, image: imageBlock }), 0, most)
const resultContent: Check = (value, at) => (typeof value === "string" ? value : resultBlocks(value, at))
const toolResult = members({ type: text, tool_use_id: text, content: resultContent, is_error: boolean, cache_control: cacheControl }, ["tool_use_id"])

const thinkingMembers = members({ type: text, thinking: text, signature: advisory(text) }, ["thinking"])
const redacted = members({ type: text, data: text })

const userBlocks = {
  text: textBlock,
  image: imageBlock,
  tool_result: (value: unknown, at: Checking) => {
    requireToolSupport(value, at)
    return toolResult(value, at)
  }
}
const assistantBlocks = {
  text: textBlock,
  tool_use: (value: unknown, at: Checking) => {
    requireToolSupport(value, at)
    return toolUse(value, at)
  },
  // Signatures are not verified. Redacted thinking cannot be read by other models and is dropped.
  thinking: (value: unknown, at: Checking) => {
    const block = thinkingMembers(value, at)
    return at.target.capabilities.supports_reasoning ? block : null
  },
  redacted_thinking: (value: unknown, at: Checking) => {
    redacted(value, at)
    return null
  }
}

/** A string, or a list of blocks of these kinds. Blocks that are not sent are removed. */
const content = (kinds: Readonly<Record<string, Check>>): Check => {
  const blocks = list(variant("type", kinds), 1, most)
  return (value, at) => {
    if (typeof value === "string") return value
    if (!Array.isArray(value)) return at.invalid("expected a string or a list of blocks")
    const sent = blocks(value, at)
    return Array.isArray(sent) ? sent.filter((block) => block !== null) : sent
  }
}

const isEmpty = (turn: unknown) => isMembers(turn) && Array.isArray(turn.content) && turn.content.length === 0

const turns = list(
  variant("role", {
    user: members({ role: text, content: content(userBlocks) }, ["content"]),
    assistant: members({ role: text, content: content(assistantBlocks) }, ["content"])
  }),
  1,
  most
)

/** The messages of a conversation. */
export const anthropicMessages: Check = (value, at) => {
  const checked = turns(value, at)
  const nonEmpty = Array.isArray(checked) ? checked.filter((turn) => !isEmpty(turn)) : []
  return nonEmpty.length > 0 ? nonEmpty : at.invalid("contains only thinking, which is not sent to the model; add a message with other content")
}

const systemBlocks = list(variant("type", { text: textBlock }), 0, most)

/** `system`: a string, or a list of text blocks. */
export const system: Check = (value, at) => {
  if (typeof value === "string") return value
  return Array.isArray(value) ? systemBlocks(value, at) : at.invalid("expected a string or a list of blocks")
}
