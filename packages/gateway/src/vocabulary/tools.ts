import { JsonExcess, scanJson } from "@seatrial/http"
import { parseJson } from "../dialects/json.ts"
import { boolean, type Check, list, type Members, members, never, only, sentBack, text, variant } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { jsonSchema } from "./jsonSchema.ts"
import { isMembers, jsonLimits } from "./parseBody.ts"

const mostTools = 128

export const functionName: Check = (value, at) =>
  typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value) ? value : at.invalid("expected 1 to 64 characters of A-Z a-z 0-9 _ -")

/** The callers of a tool. Callers other than the model run on the vendors' servers. */
export const direct: Check = (value, at) =>
  Array.isArray(value) && value.length === 1 && value[0] === "direct" ? undefined : at.unsupportedValue('only ["direct"] is supported')

/** Members of a function that only Responses has. */
const ofResponses = { allowed_callers: direct, async: only(false), defer_loading: only(false), output_schema: never }

/** The kind of a tool choice; null if it is unknown. */
const choiceOf = (tool_choice: unknown): "auto" | "required" | "named" | "none" | null => {
  if (typeof tool_choice !== "string") return tool_choice === undefined ? "auto" : "named"
  return tool_choice === "auto" || tool_choice === "required" || tool_choice === "named" || tool_choice === "none" ? tool_choice : null
}

/** Refuses strict tools, for a model that does not enforce the schema of arguments if it chooses the tool itself. */
export const refuseStrict = (
  tools: ReadonlyArray<unknown>,
  definitionOf: (tool: unknown) => Readonly<Record<string, unknown>>,
  steps: ReadonlyArray<string>,
  at: Checking
): void => {
  for (const [index, tool] of tools.entries()) {
    if (definitionOf(tool).strict === true) {
      at.unsupportedValue("the model does not enforce the schema of arguments with tool_choice auto", "tools", index, ...steps, "strict")
    }
  }
}

/**
 * Checks of tools, of the tool choice, and of the rules between them. `under`: the member of a tool that contains its
 * definition; null if the tool itself does.
 */
export const toolForms = (under: "function" | null) => {
  const steps = under === null ? [] : [under]
  const aFunction = (fields: Members) =>
    variant("type", {
      function: under === null ? members({ type: text, ...fields }, ["name"]) : members({ type: text, [under]: members(fields, ["name"]) }, [under])
    })
  const definitionOf = (checked: unknown): Readonly<Record<string, unknown>> => {
    const inner = under !== null && isMembers(checked) ? checked[under] : checked
    return isMembers(inner) ? inner : {}
  }
  const definition = { name: functionName, description: text, parameters: jsonSchema, strict: boolean, ...(under === null ? ofResponses : {}) }
  const someTools = list(aFunction(definition), 1, mostTools)
  const namedChoice = aFunction({ name: functionName })

  /** Many clients send an empty list if there are no tools. */
  const tools: Check = (value, at) => {
    if (Array.isArray(value) && value.length === 0) return undefined
    const checked = someTools(value, at)
    const names = new Set<unknown>()
    for (const [index, one] of Array.isArray(checked) ? checked.entries() : []) {
      const { name } = definitionOf(one)
      if (names.has(name)) at.invalid("another tool has this name", index, ...steps, "name")
      names.add(name)
    }
    return checked
  }

  const toolChoice: Check = (value, at) => {
    if (isMembers(value)) return namedChoice(value, at)
    if (value === "auto" || value === "required" || value === "none") return value
    return typeof value === "string"
      ? at.unsupportedValue("only auto, required, none and a function are supported")
      : at.invalid("expected a string or an object")
  }

  const checkNamed = (tools: ReadonlyArray<unknown>, tool_choice: unknown, at: Checking): void => {
    if (!tools.some((one) => definitionOf(one).name === definitionOf(tool_choice).name)) {
      at.invalid("none of the tools has this name", "tool_choice", ...steps, "name")
    }
  }

  const toolsTogether = (body: Record<string, unknown>, at: Checking): void => {
    const { tool_choice, tools: checkedTools } = body
    const choice = choiceOf(tool_choice)
    if (!Array.isArray(checkedTools)) {
      if (choice === "required" || choice === "named") at.invalid("requires tools", "tool_choice")
      delete body.tool_choice
      delete body.parallel_tool_calls
      return
    }
    const { strict_arguments, tool_choice: served } = at.target.capabilities.tool_calling
    if (choice === null || !served[choice]) {
      at.unsupportedValue(`the model does not support ${choice === "named" ? "a named function" : (choice ?? tool_choice)}`, "tool_choice")
    }
    if (choice === "named") checkNamed(checkedTools, tool_choice, at)
    if (choice === "auto" && !strict_arguments) refuseStrict(checkedTools, definitionOf, steps, at)
  }

  return { tools, toolChoice, toolsTogether }
}

export const parallelToolCalls: Check = (value, at) => {
  const { parallel_calls, single_call } = at.target.capabilities.tool_calling
  if (boolean(value, at) === true ? parallel_calls : single_call) return value
  return at.unsupportedValue(
    value === true ? "the model does not support several tool calls per answer" : "the model cannot be limited to one tool call per answer"
  )
}

/**
 * The arguments of a previous call. Engines parse them before they render the template and reject values other than
 * objects. Some models write nothing for a function without parameters, and callers send that back.
 */
export const pastArguments: Check = (value, at) => {
  if (value === "") return "{}"
  // The scan of the body does not look into strings.
  const read = typeof value === "string" && !(scanJson(Buffer.from(value), jsonLimits) instanceof JsonExcess) ? parseJson(value) : undefined
  return isMembers(read) ? value : at.invalid("expected a JSON object as a string")
}

const pastCall = variant("type", {
  function: members(
    {
      id: text,
      type: text,
      // Position of a call in a stream.
      index: sentBack,
      function: members({ name: functionName, arguments: pastArguments, parsed_arguments: sentBack }, ["name", "arguments"])
    },
    ["id", "function"]
  )
})
const somePastCalls = list(pastCall, 1, mostTools)

/** The calls of a previous message; an empty list, as engines write it, counts as absent. */
export const pastCalls: Check = (value, at) => {
  if (Array.isArray(value) && value.length === 0) return undefined
  return at.target.capabilities.tool_calling.tool_results ? somePastCalls(value, at) : at.unsupportedValue("the model does not accept tool calls or results")
}
