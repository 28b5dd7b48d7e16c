import { advisory, integer, members, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { jsonSchema } from "./jsonSchema.ts"
import { isMembers } from "./parseBody.ts"
import { messageEffortTogether, reasoningEffort, switchedOff } from "./reasoning.ts"

const least = 1_024
const display = advisory(text)

/** `thinking` of a message. `adaptive` is always accepted and not sent, because it is the default. */
export const thinking = variant("type", {
  adaptive: (value, at) => {
    members({ type: text, display })(value, at)
    return undefined
  },
  disabled: (value, at) => {
    members({ type: text })(value, at)
    const { reasoning_controls, supports_reasoning } = at.target.capabilities
    if (!supports_reasoning) return undefined
    return reasoning_controls.thinking_toggle ? { type: "disabled" } : at.unsupportedValue("the model always thinks", "type")
  },
  enabled: (value, at) => {
    const checked = members({ type: text, budget_tokens: integer(least, Number.MAX_SAFE_INTEGER), display }, ["budget_tokens"])(value, at)
    return at.target.capabilities.reasoning_controls.token_budget ? checked : at.unsupportedValue("the model does not support a budget; send adaptive", "type")
  }
})

/** Checks the budget against `max_tokens`, and turns thinking off with the template's switch. */
export const thinkingTogether = (body: Record<string, unknown>, at: Checking): void => {
  messageEffortTogether(body, at)
  const { max_tokens, thinking: chosen } = body
  if (!isMembers(chosen)) return
  if (typeof chosen.budget_tokens === "number" && typeof max_tokens === "number" && chosen.budget_tokens >= max_tokens) {
    at.invalid("must be below max_tokens", "thinking", "budget_tokens")
  }
  if (chosen.type === "disabled") body.chat_template_kwargs = switchedOff
}

const schemaFormat = members({ type: text, schema: jsonSchema }, ["schema"])

/** `output_config` of a message. */
export const outputConfig = members({
  effort: reasoningEffort,
  format: (value, at) => (at.formats.has("json_schema") ? variant("type", { json_schema: schemaFormat })(value, at) : at.unsupported())
})
