import { either, type Grammar, literal, repeated, sequence } from "./grammar/Grammar.ts"
import { anyObject } from "./grammar/json.ts"
import { schemaGrammar } from "./grammar/jsonSchema.ts"
import { badRequest, type ChatBody } from "./Protocol.ts"
import { closeMark, openMark } from "./ToolCallReader.ts"

/** What a request's tools ask of its answer. */
export interface ToolUse {
  /** What the template is given. */
  readonly shown: ReadonlyArray<unknown> | null
  /** How many calls are read out of the answer; 0: it is text. */
  readonly most: number
  /** What the answer has to be, where it has to be calls. */
  readonly grammar: Grammar | null
  /** Whether one function was asked for by its name. */
  readonly named: boolean
}

const mostCalls = 16

type Tool = NonNullable<ChatBody["tools"]>[number]

const callOf = ({ function: { name, parameters } }: Tool): Grammar =>
  sequence(
    literal(`${openMark}{"name": ${JSON.stringify(name)}, "arguments": `),
    parameters == null || Object.keys(parameters).length === 0 ? anyObject : schemaGrammar({ type: "object", ...parameters }),
    literal(`}${closeMark}`)
  )

/** Reads `tools`, `tool_choice` and `parallel_tool_calls`. `reads`: whether calls are read at all. Throws `ApiError` 400. */
export const toolUseOf = ({ parallel_tool_calls, tool_choice, tools }: ChatBody, reads: boolean): ToolUse => {
  const choice = tool_choice ?? (tools == null ? "none" : "auto")
  const most = parallel_tool_calls === false ? 1 : mostCalls
  if (tools == null) {
    if (choice !== "none") throw badRequest("When using `tool_choice`, `tools` must be set.", "tool_choice")
    return { shown: null, most: 0, grammar: null, named: false }
  }
  if (choice === "none") return { shown: null, most: 0, grammar: null, named: false }
  if (!reads) throw badRequest('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "tools")
  if (choice === "auto") return { shown: tools, most: parallel_tool_calls === false ? 1 : Number.POSITIVE_INFINITY, grammar: null, named: false }
  if (choice === "required") {
    const call = either(...tools.map(callOf))
    return { shown: tools, most, grammar: sequence(call, repeated(sequence(literal("\n"), call), 0, most - 1)), named: false }
  }
  const tool = tools.find((one) => one.function.name === choice.function.name)
  if (tool === undefined) throw badRequest("The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice")
  return { shown: tools, most: 1, grammar: callOf(tool), named: true }
}
