import { randomInt } from "node:crypto"
import { isObject, parseJson } from "./dialects/json.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"

/** What is kept of a prompt whose tokens its engine has not reported yet. */
export interface PromptSample {
  /** The JSON of the request without its images, or parts of it. */
  readonly json: string
  /** Characters of the request for each character of `json`; 1 if that is all of it. */
  readonly scale: number
  readonly images: number
  /** Tokens that the caller gave as tokens: such a request has no other prompt, and nothing of it needs to be kept. */
  readonly tokens: number
}

/** Characters that are kept of one prompt. */
const maxSample = 16_384
/** Parts that are taken of a longer one, each from a random place, so that no caller knows which text is counted. */
const parts = 16

/** Takes the sample: of a long request some parts, which are copied, so that they do not keep all of it in memory. */
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

/** The members of a request that engines make the prompt of. */
const promptMembers = ["prompt", "input", "messages", "system", "instructions", "tools"] as const

/** The text to count. Names and marks of JSON represent those of the chat template. */
export const textOf = ({ json, scale }: PromptSample): string => {
  const members = scale === 1 ? parseJson(json) : undefined
  if (!isObject(members)) return json
  const texts: Array<string> = []
  for (const name of promptMembers) {
    const value = members[name]
    if (value === undefined || value === null) continue
    for (const one of Array.isArray(value) ? value : [value]) texts.push(typeof one === "string" ? one : JSON.stringify(one))
  }
  return texts.join("\n")
}
