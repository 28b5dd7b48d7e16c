import { advisory, boolean, type Check, integer, list, members, nonEmptyText, number, numberAbove, text } from "./Check.ts"
import { CallerName } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"
import { responseFormat } from "./responseFormat.ts"

const maxBias = 100
const maxBiases = 300

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** An integer of 64 bits, kept exactly. */
const seed: Check = (value, at) => {
  if (typeof value === "number" && Number.isSafeInteger(value)) return value
  if (JSON.isRawJSON(value)) {
    const digits = BigInt(JSON.stringify(value))
    if (digits >= smallest && digits <= largest) return value
  }
  return at.invalid("expected a 64-bit integer")
}

/** Engines turn `top_k` off with -1, so 0 becomes -1. */
const topK: Check = (value, at) => (integer(-1, 1_000_000)(value, at) === 0 ? -1 : value)

const stop: Check = (value, at) => {
  if (typeof value === "string") return nonEmptyText(value, at)
  return list(nonEmptyText, 1, 4)(value, at)
}

const logitBias: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  const tokens = Object.keys(value)
  if (tokens.length > maxBiases) return at.invalid(`expected at most ${maxBiases} tokens`)
  for (const token of tokens) {
    if (!/^\d{1,9}$/.test(token)) return at.invalid("expected a token ID", new CallerName(token))
    at.withinName(token, number(-maxBias, maxBias), value[token])
  }
  return tokens.length === 0 ? undefined : value
}

const streamOptions = members({ include_usage: boolean, include_obfuscation: boolean })

/** Any positive number of tokens, independent of the model's context length. */
export const tokenLimit: Check = (value, at) => {
  // A number that a double cannot represent arrives as raw JSON.
  const limit = JSON.isRawJSON(value) ? Number(JSON.stringify(value)) : value
  return typeof limit === "number" && Number.isInteger(limit) && limit >= 1
    ? Math.min(limit, Number.MAX_SAFE_INTEGER)
    : at.invalid("expected an integer of at least 1")
}

/** The fields that Chat Completions and Completions share. */
export const sampling = {
  model: text,
  stream: boolean,
  stream_options: streamOptions,
  max_tokens: tokenLimit,
  temperature: number(0, 2),
  top_p: numberAbove(0, 1),
  top_k: topK,
  min_p: number(0, 1),
  presence_penalty: number(-2, 2),
  frequency_penalty: number(-2, 2),
  repetition_penalty: numberAbove(0, 2),
  n: integer(1, 8),
  seed,
  stop,
  logit_bias: logitBias,
  response_format: responseFormat,
  user: advisory(text)
} as const
