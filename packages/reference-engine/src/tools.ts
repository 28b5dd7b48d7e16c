import type { ToolCallReading } from "./Arguments.ts"
import { begin, either, type Grammar, literal, marked, repeated, type Steps, sequence } from "./grammar/Grammar.ts"
import { anyObject } from "./grammar/json.ts"
import { schemaGrammar } from "./grammar/jsonSchema.ts"
import { badRequest, type ChatBody } from "./Protocol.ts"
import { closeMark, openMark } from "./ToolCallReader.ts"

/** The requirements of a request's tools on its answer. */
export interface ToolUse {
  /** The tools for the template. */
  readonly templateTools: ReadonlyArray<unknown> | null
  /** Maximum number of calls in the answer; 0: calls stay in the text. */
  readonly most: number
  /**
   * The required form of the answer, if it must contain calls or if its calls must match the schemas of their tools.
   */
  readonly grammar: Steps | null
  /** Whether `tool_choice` names a function. */
  readonly namesFunction: boolean
}

const mostCalls = 16

type Tool = NonNullable<ChatBody["tools"]>[number]

/** A call after its mark. `bound`: whether its arguments must match the schema. */
const restOf = ({ function: { name, parameters } }: Tool, bound: boolean): Grammar =>
  sequence(
    literal(`{"name": ${JSON.stringify(name)}, "arguments": `),
    !bound || parameters == null || Object.keys(parameters).length === 0 ? anyObject : schemaGrammar({ type: "object", ...parameters }),
    literal(`}${closeMark}`)
  )

const callOf = (tool: Tool): Grammar => sequence(literal(openMark), restOf(tool, true))

const isStrict = (tool: Tool): boolean => tool.function.strict === true

/** A tool in the form for templates. */
const shownOf = ({ type, function: { strict: _, ...rest } }: Tool) => ({ type, function: rest })

/**
 * If the model decides about calls, one strict tool is enough to bind all calls. `response_format` takes precedence.
 */
const boundCalls = (tools: ReadonlyArray<Tool>, { response_format }: ChatBody): Steps | null =>
  tools.some(isStrict) && (response_format == null || response_format.type === "text")
    ? marked(openMark, either(...tools.map((tool) => restOf(tool, isStrict(tool)))))
    : null

const noTools: ToolUse = { templateTools: null, most: 0, grammar: null, namesFunction: false }

/** The model decides about calls. */
const autoUse = (tools: ReadonlyArray<Tool>, body: ChatBody, reading: ToolCallReading): ToolUse => {
  const templateTools = tools.map(shownOf)
  if (reading === "unread") return { ...noTools, templateTools }
  const most = body.parallel_tool_calls === false ? 1 : Number.POSITIVE_INFINITY
  return { templateTools, most, grammar: boundCalls(tools, body), namesFunction: false }
}

/** The answer consists of calls. */
const requiredUse = (tools: ReadonlyArray<Tool>, most: number): ToolUse => {
  const call = either(...tools.map(callOf))
  const calls = sequence(call, repeated(sequence(literal("\n"), call), 0, most - 1))
  return { templateTools: tools.map(shownOf), most, grammar: begin(calls), namesFunction: false }
}

/** The answer is one call of the named tool. */
const namedUse = (tools: ReadonlyArray<Tool>, name: string): ToolUse => {
  const tool = tools.find((one) => one.function.name === name)
  if (tool === undefined) throw badRequest("The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice")
  return { templateTools: tools.map(shownOf), most: 1, grammar: begin(callOf(tool)), namesFunction: true }
}

/** Reads `tools`, `tool_choice` and `parallel_tool_calls`. Throws `ApiError` 400. */
export const toolUseOf = (body: ChatBody, reading: ToolCallReading): ToolUse => {
  const { parallel_tool_calls, tool_choice, tools } = body
  const choice = tool_choice ?? (tools == null ? "none" : "auto")
  if (tools == null && choice !== "none") throw badRequest("When using `tool_choice`, `tools` must be set.", "tool_choice")
  if (tools == null || choice === "none") return noTools
  if (reading === "refused") throw badRequest('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "tools")
  if (choice === "auto") return autoUse(tools, body, reading)
  if (choice === "required") return requiredUse(tools, parallel_tool_calls === false ? 1 : mostCalls)
  return namedUse(tools, choice.function.name)
}
