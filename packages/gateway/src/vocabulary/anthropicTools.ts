import { cacheControl } from "./anthropicBlocks.ts"
import { advisory, boolean, type Check, list, members, never, only, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { jsonSchema } from "./jsonSchema.ts"
import { isMembers } from "./parseBody.ts"
import { direct, functionName, refuseStrict } from "./tools.ts"

const mostTools = 128

const custom = members(
  {
    type: text,
    name: functionName,
    description: text,
    input_schema: jsonSchema,
    strict: boolean,
    cache_control: cacheControl,
    eager_input_streaming: advisory(boolean),
    defer_loading: only(false),
    allowed_callers: direct,
    input_examples: never
  },
  ["name", "input_schema"]
)

/** Tools of other types run on the vendor's servers, so engines do not support them. */
const tool: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  if (value.type != null && value.type !== "custom") return at.unsupportedValue("only custom tools are supported", "type")
  const { type: _, ...checked } = custom(value, at)
  return checked
}
const someTools = list(tool, 1, mostTools)

/** `tools` of a message; an empty list counts as absent. */
export const anthropicTools: Check = (value, at) => {
  if (Array.isArray(value) && value.length === 0) return undefined
  const checked = someTools(value, at)
  const names = new Set<unknown>()
  for (const [index, one] of Array.isArray(checked) ? checked.entries() : []) {
    if (names.has(one.name)) at.invalid("another tool has this name", index, "name")
    names.add(one.name)
  }
  return checked
}

const one: Check = (value, at) => {
  if (boolean(value, at) === false) return undefined
  return at.target.capabilities.tool_calling.single_call ? value : at.unsupportedValue("the model cannot be limited to one tool call per answer")
}

const choice = members({ type: text, disable_parallel_tool_use: one })

/** `tool_choice` of a message. */
export const anthropicChoice: Check = variant("type", {
  auto: choice,
  any: choice,
  none: members({ type: text }),
  tool: members({ type: text, name: functionName, disable_parallel_tool_use: one }, ["name"])
})

const gates = new Map([
  ["auto", "auto"],
  ["any", "required"],
  ["tool", "named"],
  ["none", "none"]
] as const)

const withoutTools = (body: Record<string, unknown>, type: unknown, at: Checking): void => {
  if (type === "any" || type === "tool") at.invalid("requires tools", "tool_choice")
  delete body.tool_choice
}

/** Rules between `tools` and `tool_choice`. `body` contains the checked values. */
export const anthropicToolsTogether = (body: Record<string, unknown>, at: Checking): void => {
  const { tool_choice, tools } = body
  const chosen = isMembers(tool_choice) ? tool_choice : { type: "auto" }
  if (!Array.isArray(tools)) {
    withoutTools(body, chosen.type, at)
    return
  }
  const { strict_arguments, tool_choice: served } = at.target.capabilities.tool_calling
  for (const [type, gate] of gates) {
    if (chosen.type === type && !served[gate]) at.unsupportedValue(`the model does not support ${type}`, "tool_choice", "type")
  }
  if (chosen.type === "tool" && !tools.some((tool) => tool.name === chosen.name)) at.invalid("none of the tools has this name", "tool_choice", "name")
  if (chosen.type === "auto" && !strict_arguments) refuseStrict(tools, (tool) => (isMembers(tool) ? tool : {}), [], at)
}
