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
}

/** Characters that are kept of one prompt. */
const maxSample = 16_384
/** Parts that are taken of a longer one, each from a random place, so that no caller knows which text is counted. */
const parts = 16

/** Takes the sample: of a long request some parts, which are copied, so that they do not keep all of it in memory. */
export const samplePrompt = ({ engineBody, imageCount, withoutImages }: CheckedRequest): PromptSample => {
  const json = withoutImages ?? engineBody
  if (json.length <= maxSample) return { json, scale: 1, images: imageCount }
  const size = maxSample / parts
  const stride = Math.floor(json.length / parts)
  const texts = Array.from({ length: parts }, (_, part) => {
    const start = part * stride + randomInt(stride - size + 1)
    return json.slice(start, start + size)
  })
  return { json: texts.join("").toWellFormed(), scale: json.length / maxSample, images: imageCount }
}

/** The members of a request that engines make the prompt of. */
const promptMembers = ["prompt", "input", "messages", "system", "instructions", "tools"] as const

export interface PromptText {
  readonly text: string
  /** Tokens that the caller gave as tokens. */
  readonly tokens: number
}

const isTokens = (value: unknown): value is ReadonlyArray<number> => Array.isArray(value) && typeof value[0] === "number"

/** What there is to count. Names and marks of JSON stand for those of the chat template. */
export const textOf = ({ json, scale }: PromptSample): PromptText => {
  const members = scale === 1 ? parseJson(json) : undefined
  if (!isObject(members)) return { text: json, tokens: 0 }
  const texts: Array<string> = []
  let tokens = 0
  for (const name of promptMembers) {
    const value = members[name]
    if (value === undefined || value === null) continue
    for (const one of Array.isArray(value) && !isTokens(value) ? value : [value]) {
      if (isTokens(one)) tokens += one.length
      else texts.push(typeof one === "string" ? one : JSON.stringify(one))
    }
  }
  return { text: texts.join("\n"), tokens }
}
