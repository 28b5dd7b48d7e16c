import { anyMembers, boolean, type Check, list, members, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

const mostTools = 128

export const functionName: Check = (value, at) =>
  typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value) ? value : at.invalid("expected 1 to 64 of A-Z a-z 0-9 _ -")

const tool = variant("type", {
  function: members({ type: text, function: members({ name: functionName, description: text, parameters: anyMembers, strict: boolean }, ["name"]) }, [
    "function"
  ])
})

/** The name in what was checked as a function. */
const nameOf = (checked: unknown): unknown => (isMembers(checked) && isMembers(checked.function) ? checked.function.name : undefined)

const someTools = list(tool, 1, mostTools)

/** Many clients send an empty list where there are no tools. */
export const tools: Check = (value, at) => {
  if (Array.isArray(value) && value.length === 0) return undefined
  const checked = someTools(value, at)
  const seen = new Set<unknown>()
  for (const [index, one] of Array.isArray(checked) ? checked.entries() : []) {
    const name = nameOf(one)
    if (seen.has(name)) at.invalid("another tool has this name", index, "function", "name")
    seen.add(name)
  }
  return checked
}

const namedChoice = variant("type", { function: members({ type: text, function: members({ name: functionName }, ["name"]) }, ["function"]) })

export const toolChoice: Check = (value, at) => {
  if (isMembers(value)) return namedChoice(value, at)
  if (value === "auto" || value === "required" || value === "none") return value
  return typeof value === "string" ? at.unsupportedValue("only auto, required, none and a function are served") : at.invalid("expected a string or an object")
}

export const parallelToolCalls: Check = (value, at) => {
  const { parallel_calls, single_call } = at.target.capabilities.tool_calling
  if (boolean(value, at) === true ? parallel_calls : single_call) return value
  return at.unsupportedValue(`the model does not serve ${value === true ? "several calls in an answer" : "answers of one call at most"}`)
}

/** What holds between the members about tools: what was checked of each is in `body`. */
export const toolsTogether = (body: Record<string, unknown>, at: Checking): void => {
  const { tool_choice, tools: given } = body
  const choice = typeof tool_choice === "string" ? tool_choice : tool_choice === undefined ? "auto" : "named"
  if (!Array.isArray(given)) {
    if (choice === "required" || choice === "named") at.invalid("goes with tools only", "tool_choice")
    delete body.tool_choice
    delete body.parallel_tool_calls
    return
  }
  const { strict_arguments, tool_choice: served } = at.target.capabilities.tool_calling
  if (!((choice === "auto" || choice === "required" || choice === "named" || choice === "none") && served[choice])) {
    at.unsupportedValue(`the model does not serve ${choice === "named" ? "a function by its name" : choice}`, "tool_choice")
  }
  if (choice === "named" && !given.some((one) => nameOf(one) === nameOf(tool_choice))) {
    at.invalid("none of the tools has this name", "tool_choice", "function", "name")
  }
  if (choice !== "auto" || strict_arguments) return
  for (const [index, one] of given.entries()) {
    if (isMembers(one) && isMembers(one.function) && one.function.strict === true) {
      at.unsupportedValue("the model does not hold arguments to their schema where it calls by itself", "tools", index, "function", "strict")
    }
  }
}

const pastCall = variant("type", {
  function: members({ id: text, type: text, function: members({ name: functionName, arguments: text }, ["name", "arguments"]) }, ["id", "function"])
})
const somePastCalls = list(pastCall, 1, mostTools)

/** The calls of a turn that is past; none where the list is empty, as engines write it. */
export const pastCalls: Check = (value, at) => {
  if (Array.isArray(value) && value.length === 0) return undefined
  return at.target.capabilities.tool_calling.tool_results ? somePastCalls(value, at) : at.unsupportedValue("the model takes no turns with tools")
}
