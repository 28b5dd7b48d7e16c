import { advisory, anyMembers, boolean, type Check, integer, only, text } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { chatMessages } from "./chatMessages.ts"
import { fillSamplingDefaults } from "./fillSamplingDefaults.ts"
import { checkChoices, limitTokens } from "./maxTokens.ts"
import { isMembers } from "./parseBody.ts"
import { chatTemplateKwargs, reasoningEffort, reasoningTogether, thinkingTokenBudget } from "./reasoning.ts"
import type { Vocabulary } from "./requestFields.ts"
import { sampling, tokenLimit } from "./sampling.ts"
import { parallelToolCalls, toolForms } from "./tools.ts"

const mostPairs = 16

/** Up to 16 pairs of strings. They have no effect. */
export const metadata: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  const names = Object.keys(value)
  if (names.length > mostPairs) return at.invalid(`expected at most ${mostPairs} pairs`)
  for (const name of names) if (value[name] !== null) at.withinName(name, text, value[name])
  return undefined
}

const modalities: Check = (value, at) => {
  if (!Array.isArray(value)) return at.invalid("expected a list")
  return value.length === 1 && value[0] === "text" ? undefined : at.unsupportedValue("only text is supported")
}

const { toolChoice, tools, toolsTogether } = toolForms("function")

const together = (body: Record<string, unknown>, at: Checking): void => {
  const { max_completion_tokens, max_tokens } = body
  if (max_completion_tokens !== undefined) {
    if (max_tokens !== undefined && max_tokens !== max_completion_tokens) {
      at.invalid("max_tokens and max_completion_tokens differ; send one of them", "max_completion_tokens")
    }
    limitTokens(body, at, "max_completion_tokens", "omit")
  }
  limitTokens(body, at, "max_tokens", "omit")
  if (body.max_completion_tokens !== undefined) delete body.max_tokens
  if (body.top_logprobs !== undefined && body.logprobs !== true) at.invalid("requires `logprobs: true`", "top_logprobs")
  checkChoices(body, at)
  toolsTogether(body, at)
  reasoningTogether(body, at)
  fillSamplingDefaults(body, at.target)
}

/** `/v1/chat/completions`. */
export const chat: Vocabulary<"/v1/chat/completions"> = {
  fields: {
    ...sampling,
    messages: chatMessages,
    max_completion_tokens: tokenLimit,
    logprobs: boolean,
    top_logprobs: integer(0, 20),
    metadata,
    safety_identifier: advisory(text),
    prompt_cache_key: text,
    prompt_cache_retention: advisory(text),
    prompt_cache_options: advisory(anyMembers),
    store: only(false),
    service_tier: only("auto", "default"),
    verbosity: only("medium"),
    modalities,
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: parallelToolCalls,
    reasoning_effort: reasoningEffort,
    chat_template_kwargs: chatTemplateKwargs,
    thinking_token_budget: thinkingTokenBudget
  },
  required: ["messages"],
  together
}
