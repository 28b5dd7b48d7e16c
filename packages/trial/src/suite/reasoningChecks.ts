import { Effect } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { converse, converseStreamed } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

const puzzle = [{ role: "user", content: "A farmer has 17 sheep. All but 9 run away. How many are left? Answer with the number." }]
const marks = /<\/?think>|\[\/?THINK\]|<\|channel\|>/

/** What a model thinks is kept apart from what it answers. */
export const reasoningSeparate: TrialCheck = {
  name: "reasoning_separate",
  class: "capability",
  purpose: "Reasoning comes apart from the answer, whole and streamed, without its marks",
  limitSeconds: seconds(40),
  skipped: ({ capabilities, chat }) => (chat && capabilities.supports_reasoning ? null : "no reasoning is parted from answers"),
  run: Effect.fnUntraced(function* (subject) {
    const on = subject.capabilities.reasoning_controls.thinking_toggle ? { chat_template_kwargs: { enable_thinking: true, thinking: true } } : {}
    const fields = { max_tokens: Math.min(thresholds.thinkingTokens * 2, Math.floor(subject.maxContext / 2)), ...on }
    const whole = yield* converse(subject, puzzle, fields)
    const streamed = yield* converseStreamed(subject, puzzle, fields)
    for (const [way, { content, reasoning }] of [
      ["whole", whole],
      ["streamed", streamed]
    ] as const) {
      if (reasoning.trim() === "") return yield* unexpected(`${way}: no reasoning`)
      if (marks.test(content) || marks.test(reasoning)) return yield* unexpected(`${way}: marks of reasoning in the text`)
    }
    const { reasoningTokens, usage } = whole
    if (reasoningTokens !== null && reasoningTokens > usage.completion_tokens) {
      return yield* unexpected(`${reasoningTokens} reasoning tokens of ${usage.completion_tokens} completion tokens`)
    }
    return `reasoning of ${reasoningTokens ?? "untold"} tokens`
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
    const { content, reasoning } = yield* converse(subject, puzzle, { max_tokens: 256, chat_template_kwargs: { enable_thinking: false, thinking: false } })
    if (reasoning.trim() !== "") return yield* unexpected(`${reasoning.length} characters of reasoning with thinking off`)
    return marks.test(content) ? yield* unexpected("marks of reasoning in the answer with thinking off") : "off"
  })
}
