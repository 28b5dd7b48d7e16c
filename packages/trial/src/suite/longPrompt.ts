import { Effect } from "effect"
import { drawer } from "../promptTokens.ts"
import { decodeShifts } from "./decodeShifts.ts"
import type { Prompt, SuiteSubject } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
import { drawnTexts } from "./texts/drawnTexts.ts"
import { wordTokens } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

/** Number of prompts at most, of drawn words for each prompt, and of words that it repeats at its end. */
const [places, drawn, repeated] = [6, 96, 16]
/** Tokens of each answer. */
const answerTokens = 64

/**
 * Prompts that nearly fill the context: prose with drawn words in each part of it. Each prompt ends with the first words
 * of another part. A model that goes on with the next ones reads them from there, so each part of the context is needed.
 * `short`: the same ends alone. Empty without a tokenizer, or if the context is short.
 */
const longPrompts = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const { maxContext, repository, seed } = subject
  const { tokenizer } = repository
  if (tokenizer === null) return []
  const length = Math.min(maxContext, thresholds.longPrompt) - answerTokens - repeated - 8
  const count = Math.min(places, Math.floor(length / drawn))
  const draw = drawer(seedOf(seed, "long_prompt"))
  const [start = []] = yield* tokenizer.encode([""], true)
  const text = (yield* tokenizer.encode(drawnTexts(seed, 3), false)).flat()
  const words = [...(yield* wordTokens(subject, draw)).values()]
  if (count < 2 || text.length === 0 || words.length === 0) return []
  const part = Math.floor(length / count)
  const spans = Array.from({ length: count }, () => Array.from({ length: drawn }, () => words[draw(words.length)] ?? 0))
  const filled = Array.from({ length }, (_, at) => text[at % text.length] ?? 0)
  for (const [place, span] of spans.entries()) filled.splice(place * part + draw(part - drawn + 1), drawn, ...span)
  return spans.map((span) => {
    const end = span.slice(0, repeated)
    return { long: [...start, ...filled.slice(start.length), ...end], short: [...start, ...end] }
  })
})

/** The differences of `decodeShifts` after prompts that nearly fill the context, and after their ends alone. */
export const longPromptShifts = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const prompts = yield* longPrompts(subject)
  const after = (chosen: ReadonlyArray<Prompt>) =>
    Effect.map(
      Effect.forEach(chosen, (prompt) => decodeShifts(subject, prompt, { max_tokens: answerTokens })),
      (shifts) => shifts.flat().map(Math.abs)
    )
  return { long: yield* after(prompts.map(({ long }) => long)), short: yield* after(prompts.map(({ short }) => short)) }
})
