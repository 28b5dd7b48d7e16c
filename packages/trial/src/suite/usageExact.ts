import type { CompletionCounts } from "@seatrial/domain"
import { Effect } from "effect"
import { textPath } from "../Subject.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { repeatCode } from "./codes.ts"
import { chatPath, goOn, promptOf, put, putStreamed, type SuiteSubject } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"

const sums = ({ completion_tokens, prompt_tokens, total_tokens }: CompletionCounts) => total_tokens === prompt_tokens + completion_tokens

/** Judges the counts of answers to one prompt. Each must count the prompt in the same way. */
class PromptUsage {
  readonly #prompts = new Set<number>()

  /** `expected`: the number of completion tokens; null if it is not known. */
  judge(usage: CompletionCounts, expected: number | null) {
    this.#prompts.add(usage.prompt_tokens)
    if (expected !== null && usage.completion_tokens !== expected) {
      return unexpected(`${usage.completion_tokens} completion tokens, asked for ${expected}`)
    }
    if (!sums(usage)) return unexpected(`total ${usage.total_tokens} is not ${usage.prompt_tokens} + ${usage.completion_tokens}`)
    return usage.prompt_tokens < 1 ? unexpected("no prompt tokens") : Effect.void
  }

  isSteady() {
    const { size } = this.#prompts
    return size === 1 ? Effect.void : unexpected(`the same prompt was counted in ${size} ways`)
  }
}

/** Answers of exactly these lengths, whole and streamed. */
const exactLengths = Effect.fnUntraced(function* (subject: SuiteSubject, words: string, lengths: ReadonlyArray<number>) {
  const counts = new PromptUsage()
  for (const max_tokens of lengths) {
    const answer = yield* put(subject, words, { max_tokens, ignore_eos: true, return_token_ids: true })
    yield* counts.judge(answer.usage, max_tokens)
    if (answer.ids !== null && answer.ids.length !== max_tokens) return yield* unexpected(`${answer.ids.length} token ids, asked for ${max_tokens}`)
    if ((answer.cached ?? 0) > answer.usage.prompt_tokens) return yield* unexpected(`${answer.cached} cached of ${answer.usage.prompt_tokens} prompt tokens`)
    yield* counts.judge((yield* putStreamed(subject, words, { max_tokens, ignore_eos: true })).usage, max_tokens)
  }
  yield* counts.isSteady()
})

/** If an answer ends early by itself, its last token counts too, and with `ignore_eos` it continues. */
const naturalEnd = Effect.fnUntraced(function* (subject: SuiteSubject, max_tokens: number) {
  const counts = new PromptUsage()
  const brief = repeatCode(subject.seed, "usage_exact")
  const natural = yield* put(subject, brief, { max_tokens, return_token_ids: true })
  yield* counts.judge(natural.usage, natural.ids?.length ?? null)
  const streamed = yield* putStreamed(subject, brief, { max_tokens })
  yield* counts.judge(streamed.usage, natural.content === streamed.content ? natural.usage.completion_tokens : null)
  yield* counts.judge((yield* put(subject, brief, { max_tokens, ignore_eos: true })).usage, max_tokens)
  yield* counts.isSteady()
})

/** The tokens of all choices count. */
const allChoices = Effect.fnUntraced(function* (subject: SuiteSubject, words: string) {
  const { capabilities, slots } = subject
  for (const [path, ask] of [
    [chatPath, put],
    [textPath, goOn]
  ] as const) {
    if (slots < 2 || capabilities.supported_parameters_by_endpoint[path]?.includes("n") !== true) continue
    const { usage } = yield* ask(subject, words, { max_tokens: 5, ignore_eos: true, temperature: 1, n: 2 })
    if (usage.completion_tokens !== 10) return yield* unexpected(`${usage.completion_tokens} tokens for two choices of 5`)
  }
})

/** A prompt of token ids has as many tokens as ids. */
const promptOfIds = Effect.fnUntraced(function* (subject: SuiteSubject, words: string) {
  const ids = yield* promptOf(subject, words)
  if (typeof ids === "string") return
  const { usage } = yield* goOn(subject, ids, { max_tokens: 1, ignore_eos: true })
  if (usage.completion_tokens !== 1) return yield* unexpected(`${usage.completion_tokens} tokens of a text, asked for 1`)
  if (usage.prompt_tokens !== ids.length) return yield* unexpected(`${usage.prompt_tokens} prompt tokens for ${ids.length} ids`)
})

/** Token counts are exact: they match the request, whole and streamed, and the sums are right. */
export const usageExact: TrialCheck = {
  name: "usage_exact",
  class: "required",
  purpose: "Token counts are exact: of prompts, of answers, whole and streamed",
  limitSeconds: seconds(15),
  run: Effect.fnUntraced(function* (subject) {
    const lengths = [1, 2, 7, 33].filter((count) => count * 4 <= subject.maxContext)
    const words = `Count upwards in words, beginning with ${(yield* vocabularyWords(subject, "usage_exact", 3)).join(" ")}.`
    yield* exactLengths(subject, words, lengths)
    yield* naturalEnd(subject, lengths.at(-1) ?? 1)
    yield* allChoices(subject, words)
    yield* promptOfIds(subject, words)
    return `${lengths.length * 2 + 3} answers`
  })
}
