import { boolean, type Check, integer, list, only } from "./Check.ts"
import { fillSamplingDefaults } from "./fillSamplingDefaults.ts"
import { checkChoices, limitTokens } from "./maxTokens.ts"
import type { Vocabulary } from "./requestFields.ts"
import { sampling } from "./sampling.ts"

const mostPrompts = 8

/** A single pass, because a prompt may have a million tokens. */
const isTokens = (value: unknown): boolean => {
  if (!Array.isArray(value) || value.length === 0) return false
  for (const token of value) if (typeof token !== "number" || !Number.isSafeInteger(token) || token < 0) return false
  return true
}

const onePrompt: Check = (value, at) => (typeof value === "string" || isTokens(value) ? value : at.invalid("expected a string or a list of tokens"))
const prompts = list(onePrompt, 1, mostPrompts)

/** A string or a list of tokens, or several prompts of the same kind. */
const prompt: Check = (value, at) => {
  if (!Array.isArray(value) || typeof value[0] === "number") return onePrompt(value, at)
  const checked = prompts(value, at)
  if (value.some((one) => typeof one !== typeof value[0])) return at.invalid("expected either only strings or only lists of tokens")
  return checked
}

/** `/v1/completions`. */
export const completions: Vocabulary<"/v1/completions"> = {
  fields: {
    ...sampling,
    prompt,
    echo: boolean,
    logprobs: integer(0, 5),
    best_of: only(1)
  },
  required: ["prompt"],
  together: (body, at) => {
    limitTokens(body, at, "max_tokens", "cut")
    checkChoices(body, at)
    fillSamplingDefaults(body, at.target)
  }
}
