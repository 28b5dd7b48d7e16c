import { boolean, type Check, integer } from "./Check.ts"
import { CallerName, type Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

const toggles = new Set(["enable_thinking", "thinking"])

export const reasoningEffort: Check = (value, at) => {
  if (typeof value !== "string") return at.invalid("expected a string")
  const { effort_values, thinking_toggle } = at.target.capabilities.reasoning_controls
  if (effort_values.includes(value) || (value === "none" && thinking_toggle)) return value
  const served = [...new Set(thinking_toggle ? [...effort_values, "none"] : effort_values)]
  if (served.length === 0) return at.unsupportedValue("the model does not support reasoning efforts; omit this field")
  return at.unsupportedValue(`only ${served.map((one) => JSON.stringify(one)).join(" or ")} is supported`)
}

export const chatTemplateKwargs: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  const kwargs: Record<string, unknown> = {}
  for (const [name, enabled] of Object.entries(value)) {
    if (enabled === null) continue
    if (!toggles.has(name) || !at.target.capabilities.reasoning_controls.thinking_toggle) return at.unsupported(toggles.has(name) ? name : new CallerName(name))
    kwargs[name] = at.within(name, boolean, enabled)
  }
  // Two names for the same switch; templates know one or the other.
  const { enable_thinking: first, thinking: second } = kwargs
  const on = first ?? second
  if (second !== undefined && second !== on) return at.invalid("contradicts enable_thinking", "thinking")
  return on === undefined ? undefined : { enable_thinking: on, thinking: on }
}

/** The template arguments that turn thinking off. */
export const switchedOff = { enable_thinking: false, thinking: false } as const

const isNoEffort = (effort: unknown, at: Checking): boolean => effort === "none" && !at.target.capabilities.reasoning_controls.effort_values.includes("none")

export const thinkingTokenBudget = integer(0, 1_000_000_000)

/** Translates the effort `none` into the template's switch if the template does not know that effort. */
export const reasoningTogether = (body: Record<string, unknown>, at: Checking): void => {
  if (!isNoEffort(body.reasoning_effort, at)) return
  if (isMembers(body.chat_template_kwargs) && body.chat_template_kwargs.enable_thinking === true)
    at.invalid("is none, but thinking is enabled", "reasoning_effort")
  delete body.reasoning_effort
  body.chat_template_kwargs = switchedOff
}

/** The same for `reasoning`. Engines would pass the effort to the template and set only one of its switches. */
export const responseReasoningTogether = (body: Record<string, unknown>, at: Checking): void => {
  const { reasoning } = body
  if (!isMembers(reasoning) || !isNoEffort(reasoning.effort, at)) return
  delete body.reasoning
  body.chat_template_kwargs = switchedOff
}

/** The same for a message, which has its own `thinking` field; the model may not support that field on this path. */
export const messageEffortTogether = (body: Record<string, unknown>, at: Checking): void => {
  const { output_config: config, thinking } = body
  if (!isMembers(config) || !isNoEffort(config.effort, at)) return
  if (!at.fields.has("thinking")) at.unsupportedValue("the model's thinking cannot be turned off on this path", "output_config", "effort")
  if (isMembers(thinking) && thinking.type === "enabled") at.invalid("is none, but thinking is enabled", "output_config", "effort")
  const { effort, ...rest } = config
  if (Object.keys(rest).length === 0) delete body.output_config
  else body.output_config = rest
  body.thinking = { type: "disabled" }
}
