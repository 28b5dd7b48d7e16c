import type { InferencePath } from "@seatrial/domain"
import { Effect, Option } from "effect"
import type { EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, decodeMessage, greedily, messageInput, messageSaid, messageText, post, responseSaid, responseText } from "./pathBodies.ts"
import {
  converse,
  converseStreamed,
  roomAfterThought,
  type SuiteSubject,
  stillThinks,
  thoughtSeconds,
  together,
  withoutThinking,
  withThinking
} from "./SuiteSubject.ts"

const puzzleWords = "A farmer has 17 sheep. All but 9 run away. How many are left? Answer with the number."
const puzzle = [{ role: "user", content: puzzleWords }]
/** What stands around a thought. */
export const marks = /<\/?think>|\[\/?THINK\]|<\|channel\|>/

/** A conversation in which a tool has answered: there some engines lose the mark, and the reasoning with it. */
const afterTool = {
  messages: [
    { role: "user", content: "What is the weather in Paris?" },
    { role: "assistant", content: "", tool_calls: [{ id: "call00001", type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } }] },
    { role: "tool", tool_call_id: "call00001", content: "snow" }
  ],
  tools: [
    {
      type: "function",
      function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }
    }
  ]
}

/** What a model thinks is kept apart from what it answers. */
export const reasoningSeparate: TrialCheck = {
  name: "reasoning_separate",
  class: "capability",
  purpose: "Reasoning comes apart from the answer, whole and streamed, also after a tool's result, without its marks",
  limitSeconds: seconds(40 + thoughtSeconds(3)),
  skipped: ({ capabilities, chat }) => (chat && capabilities.supports_reasoning ? null : "no reasoning is parted from answers"),
  run: Effect.fnUntraced(function* (subject) {
    const { capabilities } = subject
    const on = capabilities.reasoning_controls.thinking_toggle ? withThinking : {}
    const fields = { max_tokens: roomAfterThought(subject, 128), ...on }
    const results = capabilities.supports_tool_calls && capabilities.tool_calling.tool_results
    const asked = { ...fields, tools: afterTool.tools, tool_choice: "auto" }
    const [whole, streamed, after] = yield* Effect.all(
      [
        converse(subject, puzzle, fields),
        converseStreamed(subject, puzzle, fields),
        results ? converse(subject, afterTool.messages, asked) : Effect.succeed(null)
      ],
      together(true)
    )
    const later = after === null ? [] : [after]
    // A model may have nothing to think of once it has a result.
    if (whole.reasoning.trim() === "" || streamed.reasoning.trim() === "")
      return yield* unexpected(`${whole.reasoning.trim() === "" ? "whole" : "streamed"}: no reasoning`)
    for (const [way, answer] of [["whole", whole], ["streamed", streamed], ...later.map((each) => ["after a result", each] as const)] as const) {
      const { content, reasoning } = answer
      if (marks.test(content) || marks.test(reasoning)) return yield* unexpected(`${way}: marks of reasoning in the text`)
      if (answer.finishReason === "stop" && content.trim() === "") return yield* unexpected(`${way}: reasoning alone, and no answer`)
    }
    const { reasoningTokens, usage } = whole
    // Its end is a token at least, and the answer another one.
    if (reasoningTokens !== null && reasoningTokens >= usage.completion_tokens && !stillThinks(whole)) {
      return yield* unexpected(`${reasoningTokens} reasoning tokens of ${usage.completion_tokens} completion tokens`)
    }
    // Some of vLLM's readers count none where the prompt opens the thought.
    return `reasoning of ${reasoningTokens || "untold"} tokens`
  })
}

/** Thinking that is turned off is off. */
export const thinkingToggle: TrialCheck = {
  name: "thinking_toggle",
  class: "capability",
  purpose: "With thinking turned off there is no reasoning",
  limitSeconds: seconds(40),
  skipped: ({ capabilities, chat }) => (chat && capabilities.reasoning_controls.thinking_toggle ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const { content, finishReason, reasoning } = yield* converse(subject, puzzle, { max_tokens: 256, ...withoutThinking(subject) })
    if (reasoning.trim() !== "") return yield* unexpected(`${reasoning.length} characters of reasoning with thinking off`)
    if (content.trim() === "" && finishReason === "stop") return yield* unexpected("no answer with thinking off")
    return marks.test(content) ? yield* unexpected("marks of reasoning in the answer with thinking off") : "off"
  })
}

/** What the engines tell a prompt's ids for, each by a name of its own. */
const tellingPrompt = { return_token_ids: true, return_prompt_token_ids: true }

/** An effort that is asked for reaches the model, whatever that makes of it. */
export const reasoningEffort: TrialCheck = {
  name: "reasoning_effort",
  class: "capability",
  purpose: "Each effort of reasoning that is offered is taken, and makes another prompt",
  limitSeconds: seconds(40),
  skipped: ({ capabilities, chat }) => (chat && capabilities.reasoning_controls.effort_values.length > 0 ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const efforts = subject.capabilities.reasoning_controls.effort_values
    const answers = yield* Effect.forEach(efforts, (effort) => converse(subject, puzzle, { max_tokens: 1, reasoning_effort: effort, ...tellingPrompt }))
    // Without ids a prompt is known by its length alone.
    const different = new Set(answers.map(({ promptIds, usage }) => promptIds?.join() ?? `${usage.prompt_tokens} tokens`)).size
    if (different < efforts.length) return yield* unexpected(`${efforts.length} efforts, ${different} different prompts`)
    return `${efforts.length} efforts`
  })
}

/** Of a path that has words of its own for it: thinking that is turned off is off there too. */
const thinkingOff = (
  name: string,
  path: InferencePath,
  field: string,
  bodyFor: (subject: SuiteSubject) => object,
  saidIn: (told: string) => { readonly all: string; readonly text: string },
  /** What else has to be so of an answer. */
  wrongWith: (subject: SuiteSubject, told: string) => Effect.Effect<string | null, EngineUnreachable | Unexpected> = () => Effect.succeed(null)
): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} there is no reasoning where thinking is turned off`,
  limitSeconds: seconds(40),
  skipped: (subject) => {
    const { reasoning_controls, supported_parameters_by_endpoint: fields } = subject.capabilities
    return claims(path)(subject) ?? (reasoning_controls.thinking_toggle && fields[path]?.includes(field) === true ? null : "not claimed")
  },
  run: Effect.fnUntraced(function* (subject) {
    const told = yield* post(subject, path, bodyFor(subject))
    const { all, text } = saidIn(told)
    if (all.trim() !== text.trim()) return yield* unexpected(`${all.length - text.length} characters of reasoning with thinking off`)
    if (text.trim() === "") return yield* unexpected("no answer with thinking off")
    if (marks.test(text)) return yield* unexpected("marks of reasoning in the answer with thinking off")
    const wrong = yield* wrongWith(subject, told)
    return wrong === null ? "off" : yield* unexpected(wrong)
  })
})

const countPath = "/v1/messages/count_tokens"

/** A conversation is counted as it is answered, thinking off as well. */
const countedOtherwise = Effect.fnUntraced(function* (subject: SuiteSubject, told: string) {
  if (claims(countPath)(subject) !== null) return null
  const counted = Option.getOrNull(
    decodeCount(yield* post(subject, countPath, { messages: puzzle, thinking: { type: "disabled" }, ...withoutThinking(subject) }))
  )
  const usage = Option.getOrNull(decodeMessage(told))?.usage
  const input = usage === undefined ? null : messageInput(usage)
  return counted?.input_tokens === input ? null : `${counted?.input_tokens ?? "no"} tokens counted of a message of ${input ?? "no"} with thinking off`
})

/** The switch in the words in which the gateway hands it on. */
export const pathThinking: ReadonlyArray<TrialCheck> = [
  thinkingOff(
    "responses_thinking",
    "/v1/responses",
    "reasoning",
    (subject) => ({
      ...greedily,
      input: puzzleWords,
      max_output_tokens: 256,
      store: false,
      ...(subject.capabilities.reasoning_controls.effort_values.includes("none") ? { reasoning: { effort: "none" } } : withoutThinking(subject))
    }),
    (told) => ({ all: responseSaid(told), text: responseText(told) })
  ),
  thinkingOff(
    "messages_thinking",
    "/v1/messages",
    "thinking",
    (subject) => ({ ...greedily, messages: puzzle, max_tokens: 256, thinking: { type: "disabled" }, ...withoutThinking(subject) }),
    (told) => ({ all: messageSaid(told), text: messageText(told) }),
    countedOtherwise
  )
]
