import { Effect } from "effect"
import { drawer } from "../../promptTokens.ts"
import { type Prompt, promptsOf, type SuiteSubject } from "../SuiteSubject.ts"
import { seedOf } from "../saltOf.ts"
import { drawnBeginnings, proseWords } from "./drawnTexts.ts"

/** Tokens that are read to find words: enough if one token in ten is a word. */
const readTokens = 1_024

/**
 * Small letters only. Special tokens and end tokens have other characters, and so have most tokens that never occur in
 * texts.
 */
const isWord = (text: string): boolean => /^\p{Ll}{3,12}$/u.test(text)

/** Words among tokens from anywhere in the vocabulary, each with its token. */
export const wordTokens = Effect.fnUntraced(function* ({ repository: { tokenizer } }: SuiteSubject, draw: (bound: number) => number) {
  if (tokenizer === null) return new Map<string, number>()
  const drawn = Array.from({ length: readTokens }, () => draw(tokenizer.vocabulary))
  const texts = (yield* tokenizer.decode(drawn.map((id) => [id]))).map((text) => text.trim())
  return new Map(drawn.flatMap((id, at) => (isWord(texts[at] ?? "") ? [[texts[at] ?? "", id]] : [])))
})

/** Words from the vocabulary. If there are too few, words of the suite's prose. */
const wordsIn = Effect.fnUntraced(function* (subject: SuiteSubject, draw: (bound: number) => number) {
  const words = [...(yield* wordTokens(subject, draw)).keys()]
  return words.length < 24 ? proseWords : words
})

/** Words that only this trial sends in this order, from the vocabulary of the model. `use`: what they are for. */
export const vocabularyWords = Effect.fnUntraced(function* (subject: SuiteSubject, use: string, count: number) {
  const draw = drawer(seedOf(subject.seed, use))
  const words = yield* wordsIn(subject, draw)
  return Array.from({ length: count }, () => words[draw(words.length)] ?? "")
})

/** Words at the beginning of a drawn prompt. */
const before = 6

/** Prompts that a model continues: words from its vocabulary, and after them a piece of the suite's prose. */
export const drawnPrompts = Effect.fnUntraced(function* (subject: SuiteSubject, use: string, count: number): Effect.fn.Return<ReadonlyArray<Prompt>> {
  const words = yield* vocabularyWords(subject, use, count * before)
  const texts = drawnBeginnings(seedOf(subject.seed, use), count)
  return yield* promptsOf(
    subject,
    texts.map((text, at) => `${words.slice(at * before, (at + 1) * before).join(" ")}. ${text}`)
  )
})
