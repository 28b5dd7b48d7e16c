import { Effect, Option, Schema } from "effect"
import type { Call } from "../engineAnswers.ts"
import { type CheckClass, type TrialCheck, unexpected } from "./Check.ts"
import { isMeasure, strictChatTools } from "./pathCalls.ts"
import { converse, converseStreamed, roomFor, type SuiteSubject, secondsOf, thinksAnyway, together, withoutThinking } from "./SuiteSubject.ts"

const tool = (name: string, description: string, properties: object) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required: Object.keys(properties) } }
})
const tools = [
  tool("get_weather", "The weather of a city now.", { city: { type: "string", description: "Name of the city" } }),
  tool("get_time", "The time in a city now.", { city: { type: "string", description: "Name of the city" } })
]
const decodeArguments = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ city: Schema.String })))
const names = new Set(tools.map((each) => each.function.name))
const user = (content: string) => ({ role: "user", content })

/** Why the calls are not one valid call of a tool; null if they are. */
const wrongWith = (calls: ReadonlyArray<Call>, only?: string): string | null => {
  if (calls.length === 0) return "no call"
  for (const call of calls) {
    if (!names.has(call.function.name) || (only !== undefined && call.function.name !== only)) return "a call of another tool"
    if (Option.isNone(decodeArguments(call.function.arguments))) return "arguments that do not match the tool's schema"
  }
  return null
}

const claims =
  (chosen: (calling: SuiteSubject["capabilities"]["tool_calling"]) => boolean) =>
  ({ capabilities, chat }: SuiteSubject): string | null =>
    chat && capabilities.supports_tool_calls && chosen(capabilities.tool_calling) ? null : "not claimed"

const shared = { class: "capability" satisfies CheckClass, limitSeconds: secondsOf(30, 2) } as const

/** Sends the request whole and streamed, and judges both in the same way. */
const both = Effect.fnUntraced(function* (subject: SuiteSubject, messages: ReadonlyArray<object>, fields: Readonly<Record<string, unknown>>) {
  const request = { max_tokens: roomFor(subject, 128), tools, ...withoutThinking(subject), ...fields }
  const ways = [converse(subject, messages, request), converseStreamed(subject, messages, request)] as const
  const [complete, streamed] = yield* Effect.all(ways, together(thinksAnyway(subject)))
  const misnumbered = streamed.callNumbers.find((number, place) => number !== place)
  if (misnumbered !== undefined) return yield* unexpected(`a streamed call has the number ${misnumbered}`)
  return [complete, streamed]
})

const calling = (name: string, question: string, choice: unknown, only: string | undefined, ends: ReadonlyArray<string>) =>
  Effect.fnUntraced(function* (subject: SuiteSubject) {
    const answers = yield* both(subject, [user(question)], { tool_choice: choice })
    const wrong = answers.flatMap(({ content, finishReason, toolCalls }) => {
      const problem = wrongWith(toolCalls, only)
      if (problem !== null) return [problem]
      if (content.trim() !== "" && name !== "tool_choice_auto") return ["content in addition to a call"]
      if (content.includes("tool_call")) return ["marks of a call in the content"]
      return ends.includes(finishReason ?? "") ? [] : [`finish reason ${finishReason} after a call`]
    })
    return wrong.length > 0 ? yield* unexpected(`${wrong.length} of ${answers.length}: ${wrong[0]}`) : `${answers.length} answers with calls`
  })

const weather = "What is the weather in Paris?"
const twoCities = "What is the weather in Paris and in Rome?"
const unrelated = "Tell me a joke about a bicycle."

/**
 * The number of prompt tokens without tools, with one and with both. A model that does not receive a tool in its prompt
 * cannot call it.
 */
const toolTokens = (subject: SuiteSubject) =>
  Effect.forEach([0, 1, 2], (count) => {
    const toolFields = count === 0 ? {} : { tools: tools.slice(0, count), tool_choice: "auto" }
    return Effect.map(converse(subject, [user(weather)], { max_tokens: 1, ...withoutThinking(subject), ...toolFields }), ({ usage }) => usage.prompt_tokens)
  })

const autoCalls = calling("tool_choice_auto", weather, "auto", "get_weather", ["tool_calls"])

export const toolChoiceAuto: TrialCheck = {
  ...shared,
  name: "tool_choice_auto",
  purpose: "Tools are in the prompt, and a question for a tool becomes a call and nothing else",
  skipped: claims(({ tool_choice }) => tool_choice.auto),
  run: Effect.fnUntraced(function* (subject) {
    const [none = 0, one = 0, two = 0] = yield* toolTokens(subject)
    if (one <= none || two <= one) return yield* unexpected(`the prompt has ${none} tokens, ${one} with a tool and ${two} with two`)
    return `${yield* autoCalls(subject)}, ${one - none} and ${two - one} tokens for the tools`
  })
}

export const toolChoiceRequired: TrialCheck = {
  ...shared,
  name: "tool_choice_required",
  purpose: "With tool_choice required every answer is a call",
  skipped: claims(({ tool_choice }) => tool_choice.required),
  run: calling("tool_choice_required", unrelated, "required", undefined, ["tool_calls", "stop"])
}

export const toolChoiceNamed: TrialCheck = {
  ...shared,
  name: "tool_choice_named",
  purpose: "With a named tool every answer is a call of that tool",
  skipped: claims(({ tool_choice }) => tool_choice.named),
  // The question asks for the other tool, so that only a binding choice leads to this one.
  run: calling("tool_choice_named", weather, { type: "function", function: { name: "get_time" } }, "get_time", ["tool_calls", "stop"])
}

export const toolChoiceNone: TrialCheck = {
  ...shared,
  name: "tool_choice_none",
  purpose: "With tool_choice none no answer is a call",
  skipped: claims(({ tool_choice }) => tool_choice.none),
  run: Effect.fnUntraced(function* (subject) {
    const answers = yield* both(subject, [user(weather)], { tool_choice: "none" })
    const called = answers.filter(({ finishReason, toolCalls }) => toolCalls.length > 0 || finishReason === "tool_calls").length
    return called > 0 ? yield* unexpected(`${called} of ${answers.length} answers are calls`) : `${answers.length} answers without a call`
  })
}

export const toolParallel: TrialCheck = {
  ...shared,
  name: "tool_parallel",
  purpose: "Two questions at once become two calls",
  skipped: claims(({ parallel_calls }) => parallel_calls),
  run: Effect.fnUntraced(function* (subject) {
    const answers = yield* both(subject, [user(twoCities)], { tool_choice: "auto", parallel_tool_calls: true })
    const wrong = answers.flatMap(({ toolCalls }) => {
      const problem = wrongWith(toolCalls)
      if (problem !== null) return [problem]
      if (toolCalls.length < 2) return [`${toolCalls.length} call`]
      return new Set(toolCalls.map(({ id }) => id)).size < toolCalls.length ? ["two calls with one id"] : []
    })
    return wrong.length > 0 ? yield* unexpected(`${wrong.length} of ${answers.length}: ${wrong[0]}`) : `${answers.length} answers with two calls`
  })
}

export const toolSingle: TrialCheck = {
  ...shared,
  name: "tool_single",
  purpose: "With parallel_tool_calls false two questions at once become one call",
  skipped: claims(({ single_call }) => single_call),
  run: Effect.fnUntraced(function* (subject) {
    const answers = yield* both(subject, [user(twoCities)], { tool_choice: "auto", parallel_tool_calls: false })
    const wrong = answers.flatMap(({ toolCalls }) => wrongWith(toolCalls) ?? (toolCalls.length > 1 ? [`${toolCalls.length} calls`] : []))
    return wrong.length > 0 ? yield* unexpected(`${wrong.length} of ${answers.length}: ${wrong[0]}`) : `${answers.length} answers with one call`
  })
}

export const toolStrict: TrialCheck = {
  ...shared,
  name: "tool_strict",
  purpose: "The arguments of a strict tool match its schema, even against its description",
  skipped: claims(({ strict_arguments }) => strict_arguments),
  run: Effect.fnUntraced(function* (subject) {
    const answers = yield* both(subject, [user(weather)], { tool_choice: "auto", tools: strictChatTools })
    const wrong = answers.flatMap(({ toolCalls }) => {
      const problem = wrongWith(toolCalls)
      if (problem !== null) return [problem]
      return toolCalls.every((call) => isMeasure(call.function.arguments)) ? [] : ["arguments that a strict tool does not take"]
    })
    return wrong.length > 0 ? yield* unexpected(`${wrong.length} of ${answers.length}: ${wrong[0]}`) : `${answers.length} answers with calls of the schema`
  })
}

export const toolRoundTrip: TrialCheck = {
  ...shared,
  limitSeconds: secondsOf(30, 5),
  name: "tool_round_trip",
  purpose: "A tool result is used in the answer, and a call that the limit cuts is not reported as complete",
  skipped: claims(({ tool_results }) => tool_results),
  run: Effect.fnUntraced(function* (subject) {
    const call = { id: "call00001", type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } }
    const messages = [user(weather), { role: "assistant", content: "", tool_calls: [call] }, { role: "tool", tool_call_id: call.id, content: "snow" }]
    const answers = yield* both(subject, messages, { tool_choice: "auto" })
    const used = answers.filter(({ content, toolCalls }) => toolCalls.length === 0 && content.toLowerCase().includes("snow")).length
    if (used < answers.length) return yield* unexpected(`${answers.length - used} of ${answers.length} answers do not use the result`)
    const asking = { tools, tool_choice: "auto", ...withoutThinking(subject) }
    const { usage } = yield* converse(subject, [user(weather)], { ...asking, max_tokens: roomFor(subject, 128) })
    for (const max_tokens of [Math.floor(usage.completion_tokens / 2), usage.completion_tokens - 3].filter((tokens) => tokens > 0)) {
      const cut = yield* converse(subject, [user(weather)], { ...asking, max_tokens })
      if (cut.usage.completion_tokens >= max_tokens && cut.finishReason === "tool_calls") return yield* unexpected("a cut call is reported as complete")
    }
    return `${used} answers with the result`
  })
}
