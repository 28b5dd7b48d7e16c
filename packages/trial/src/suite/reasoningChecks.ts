import { type InferencePath, messageInputTokens } from "@seatrial/domain"
import { Effect, Option } from "effect"
import type { Answer, EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, decodeMessage, greedily, messageSaid, messageText, post, responseSaid, responseText } from "./pathBodies.ts"
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
/** The marks around reasoning. */
export const marks = /<\/?think>|\[\/?THINK\]|<\|channel\|>/

/** A conversation with a tool result. Some engines then lose the mark, and the reasoning with it. */
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

const puzzleFields = (subject: SuiteSubject) => ({
  max_tokens: roomAfterThought(subject, 128),
  ...(subject.capabilities.reasoning_controls.thinking_toggle ? withThinking : {})
})

const askWhole = (subject: SuiteSubject) => converse(subject, puzzle, puzzleFields(subject))
const askStreamed = (subject: SuiteSubject) => converseStreamed(subject, puzzle, puzzleFields(subject))

/** Answers to the puzzle, whole and streamed, and to a conversation with a tool result if the model supports one. */
const askPuzzle = (subject: SuiteSubject) => {
  const { capabilities } = subject
  const takesResults = capabilities.supports_tool_calls && capabilities.tool_calling.tool_results
  const toolFields = { ...puzzleFields(subject), tools: afterTool.tools, tool_choice: "auto" }
  return Effect.all(
    [askWhole(subject), askStreamed(subject), takesResults ? converse(subject, afterTool.messages, toolFields) : Effect.succeed(null)],
    together(true)
  )
}

/** Fails if an answer has no reasoning. `way`: how the answer was requested. */
const hasReasoning = (way: string, { reasoning }: Answer) => (reasoning.trim() === "" ? unexpected(`${way}: no reasoning`) : Effect.void)

/** Fails if the marks of reasoning are in the text, or if there is only reasoning. */
const isSeparate = (way: string, { content, finishReason, reasoning }: Answer) => {
  if (marks.test(content) || marks.test(reasoning)) return unexpected(`${way}: marks of reasoning in the text`)
  return finishReason === "stop" && content.trim() === "" ? unexpected(`${way}: reasoning alone, and no answer`) : Effect.void
}

/**
 * After the same reasoning, the streamed answer is the whole one. Different reasoning may lead to different answers. If
 * the whole answer changes when it is requested again, nothing can be compared.
 */
const answersAlike = Effect.fnUntraced(function* (subject: SuiteSubject, complete: Answer, streamed: Answer) {
  const alike = (one: Answer, other: Answer) => one.content.trim() === other.content.trim()
  const compared = (other: Answer) => other.finishReason === "stop" && complete.reasoning.trim() === other.reasoning.trim()
  if (complete.finishReason !== "stop" || !compared(streamed) || alike(complete, streamed)) return
  const again = yield* askWhole(subject)
  const streamedAgain = yield* askStreamed(subject)
  if (compared(again) && compared(streamedAgain) && alike(complete, again) && alike(streamed, streamedAgain)) {
    return yield* unexpected(`after the same reasoning the answer has ${streamed.content.length} characters streamed, ${complete.content.length} whole`)
  }
})

/** Reasoning is separated from the answer. */
export const reasoningSeparate: TrialCheck = {
  name: "reasoning_separate",
  class: "capability",
  purpose: "Reasoning is separated from the answer without its marks, whole and streamed, also after a tool result",
  limitSeconds: seconds(40 + thoughtSeconds(3)),
  skipped: ({ capabilities, chat }) => (chat && capabilities.supports_reasoning ? null : "the model's reasoning is not separated from its answers"),
  run: Effect.fnUntraced(function* (subject) {
    const [complete, streamed, after] = yield* askPuzzle(subject)
    yield* hasReasoning("whole", complete)
    yield* hasReasoning("streamed", streamed)
    yield* isSeparate("whole", complete)
    yield* isSeparate("streamed", streamed)
    // A model may not need to reason once it has a result.
    if (after !== null) yield* isSeparate("after a result", after)
    yield* answersAlike(subject, complete, streamed)
    const { reasoningTokens, usage } = complete
    // The end mark takes at least one token, and the answer another.
    if (reasoningTokens !== null && reasoningTokens >= usage.completion_tokens && !stillThinks(complete)) {
      return yield* unexpected(`${reasoningTokens} reasoning tokens of ${usage.completion_tokens} completion tokens`)
    }
    // Some parsers of vLLM count no reasoning tokens if the prompt opens the reasoning.
    return `reasoning of ${reasoningTokens || "an unknown number of"} tokens`
  })
}

/** Reasoning that is turned off is off. */
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

/** The options with which engines report the ids of a prompt. */
const tellingPrompt = { return_token_ids: true, return_prompt_token_ids: true }

/** A requested effort reaches the prompt, regardless of how the model uses it. */
export const reasoningEffort: TrialCheck = {
  name: "reasoning_effort",
  class: "capability",
  purpose: "Each offered reasoning effort is accepted and changes the prompt",
  limitSeconds: seconds(40),
  skipped: ({ capabilities, chat }) => (chat && capabilities.reasoning_controls.effort_values.length > 0 ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const efforts = subject.capabilities.reasoning_controls.effort_values
    const answers = yield* Effect.forEach(efforts, (effort) => converse(subject, puzzle, { max_tokens: 1, reasoning_effort: effort, ...tellingPrompt }))
    // Without ids only the length identifies a prompt.
    const different = new Set(answers.map(({ promptIds, usage }) => promptIds?.join() ?? `${usage.prompt_tokens} tokens`)).size
    if (different < efforts.length) return yield* unexpected(`${efforts.length} efforts, ${different} different prompts`)
    return `${efforts.length} efforts`
  })
}

/** Turning reasoning off also works on a path with its own field for it. */
const thinkingOff = (
  name: string,
  path: InferencePath,
  field: string,
  bodyFor: (subject: SuiteSubject) => object,
  saidIn: (received: string) => { readonly all: string; readonly text: string },
  /** A further requirement for the answer. */
  wrongWith: (subject: SuiteSubject, received: string) => Effect.Effect<string | null, EngineUnreachable | Unexpected> = () => Effect.succeed(null)
): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} there is no reasoning if it is turned off`,
  limitSeconds: seconds(40),
  skipped: (subject) => {
    const { reasoning_controls, supported_parameters_by_endpoint: fields } = subject.capabilities
    return claims(path)(subject) ?? (reasoning_controls.thinking_toggle && fields[path]?.includes(field) === true ? null : "not claimed")
  },
  run: Effect.fnUntraced(function* (subject) {
    const answer = yield* post(subject, path, bodyFor(subject))
    const { all, text } = saidIn(answer)
    if (all.trim() !== text.trim()) return yield* unexpected(`${all.length - text.length} characters of reasoning with thinking off`)
    if (text.trim() === "") return yield* unexpected("no answer with thinking off")
    if (marks.test(text)) return yield* unexpected("marks of reasoning in the answer with thinking off")
    const wrong = yield* wrongWith(subject, answer)
    return wrong === null ? "off" : yield* unexpected(wrong)
  })
})

const countPath = "/v1/messages/count_tokens"

/** A conversation has the same token count as its answer reports, also with reasoning turned off. */
const countedOtherwise = Effect.fnUntraced(function* (subject: SuiteSubject, received: string) {
  if (claims(countPath)(subject) !== null) return null
  const counted = Option.getOrNull(
    decodeCount(yield* post(subject, countPath, { messages: puzzle, thinking: { type: "disabled" }, ...withoutThinking(subject) }))
  )
  const usage = Option.getOrNull(decodeMessage(received))?.usage
  const input = usage === undefined ? null : messageInputTokens(usage)
  return counted?.input_tokens === input
    ? null
    : `count_tokens gives ${counted?.input_tokens ?? "no"} tokens for a message of ${input ?? "no"} with thinking off`
})

/** Turning reasoning off, in the format that the gateway sends. */
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
    (received) => ({ all: responseSaid(received), text: responseText(received) })
  ),
  thinkingOff(
    "messages_thinking",
    "/v1/messages",
    "thinking",
    (subject) => ({ ...greedily, messages: puzzle, max_tokens: 256, thinking: { type: "disabled" }, ...withoutThinking(subject) }),
    (received) => ({ all: messageSaid(received), text: messageText(received) }),
    countedOtherwise
  )
]
