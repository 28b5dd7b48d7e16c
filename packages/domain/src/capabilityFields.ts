import type { ReasoningControls, ToolCalling } from "./catalog.ts"

/** No tool calling: every form is refused. */
export const noToolCalling: typeof ToolCalling.Type = {
  tool_choice: { auto: false, required: false, named: false, none: false },
  parallel_calls: false,
  single_call: false,
  strict_arguments: false,
  tool_results: false
}

/** No control over reasoning. */
export const noReasoningControls: typeof ReasoningControls.Type = { thinking_toggle: false, effort_values: [], token_budget: false }

/** The fields that control tool calling. */
export const toolFields: ReadonlySet<string> = new Set(["tools", "tool_choice", "parallel_tool_calls"])
export type Controls = typeof ReasoningControls.Type

/** The fields that control reasoning, each with a test whether the model has that control. */
export const reasoningFields = new Map<string, (controls: Controls) => boolean>([
  ["reasoning_effort", ({ effort_values, thinking_toggle }) => effort_values.length > 0 || thinking_toggle],
  ["chat_template_kwargs", ({ thinking_toggle }) => thinking_toggle],
  ["thinking_token_budget", ({ token_budget }) => token_budget]
])
