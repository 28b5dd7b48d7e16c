import { randomInt } from "node:crypto"
import { conversationFields, instructionFields, promptFields } from "@seatrial/domain"
import { isObject, parseJson } from "./dialects/json.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"

/** The part of a prompt that is kept to count its tokens if the engine does not report them. */
export interface PromptSample {
  /** The request as JSON without its images, or parts of it. */
  readonly json: string
  /** Characters of the request for each character of `json`; 1 if `json` is complete. */
  readonly scale: number
  readonly images: number
  /** Tokens of a prompt that the caller sent as token IDs. Such a request has no text to count. */
  readonly tokens: number
}

/** Characters that are kept of one prompt. */
const maxSample = 16_384
/**
 * Parts taken from a longer prompt. Each starts at a random place, so that callers cannot predict which text is
 * counted.
 */
const parts = 16

/** Takes the sample. Parts of a long request are copied, so that they do not keep all of it in memory. */
export const samplePrompt = ({ engineBody, givenTokens, imageCount, withoutImages }: CheckedRequest): PromptSample => {
  if (givenTokens !== null) return { json: "{}", scale: 1, images: 0, tokens: givenTokens }
  const json = withoutImages ?? engineBody
  if (json.length <= maxSample) return { json, scale: 1, images: imageCount, tokens: 0 }
  const size = maxSample / parts
  const stride = Math.floor(json.length / parts)
  const texts = Array.from({ length: parts }, (_, part) => {
    const start = part * stride + randomInt(stride - size + 1)
    return json.slice(start, start + size)
  })
  return { json: texts.join("").toWellFormed(), scale: json.length / maxSample, images: imageCount, tokens: 0 }
}

/** The request members that make up the prompt. */
const promptMembers = [...promptFields, ...instructionFields, "tools"]

/** Members of messages that the prompt does not contain as text. */
const framing = new Set(["role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "cache_control"])

/** Tokens that a chat template writes around each message, about: its start with the role, and its end. */
const tokensPerMessage = 3

/** The texts in a conversation. Names and punctuation of its JSON are not in the prompt. */
const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isObject(value) ? Object.entries(value).flatMap(([name, inner]) => (framing.has(name) ? [] : textsIn(inner))) : []
}

/**
 * The text to count, and the tokens of the chat template that are not in it. Templates write tools as JSON, so these
 * are text as JSON. Parts of a long request are text with the JSON around it, of which there is little.
 */
export const promptOf = ({ json, scale }: PromptSample): { readonly text: string; readonly templateTokens: number } => {
  const members = scale === 1 ? parseJson(json) : undefined
  if (!isObject(members)) return { text: json, templateTokens: 0 }
  const texts: Array<string> = []
  for (const name of promptMembers) {
    const value = members[name]
    if (value === undefined || value === null) continue
    if (name === "tools") for (const tool of Array.isArray(value) ? value : [value]) texts.push(JSON.stringify(tool))
    else texts.push(...textsIn(value))
  }
  const messages = conversationFields.map((name) => members[name]).find(Array.isArray) ?? []
  return { text: texts.join("\n"), templateTokens: messages.length * tokensPerMessage }
}
