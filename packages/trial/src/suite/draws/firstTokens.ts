import { checkedTopTokens } from "@seatrial/domain"
import { Effect } from "effect"
import type { PinnedTokenizer } from "../readPinned.ts"
import { put, type SuiteSubject, scoreOf } from "../SuiteSubject.ts"
import { vocabularyWords } from "../texts/vocabularyWords.ts"
import { thresholds } from "../thresholds.ts"
import { cutSplits, type FirstWord, isWord, type ListedToken, type Split, temperatureSplit, wordsAmong } from "./firstWords.ts"

/** A question of this trial, and the likeliest first tokens of its answer. */
export interface KnownStart {
  readonly question: string
  readonly prompt: ReadonlyArray<number>
  /** Likeliest first. */
  readonly listed: ReadonlyArray<ListedToken>
}

/** Most tokens that engines list by default. */
const mostListed = 20
/** Number of questions from which the one with the most uncertain first token is chosen, and of words in each. */
const [questions, named] = [6, 8]
/** Number of words that are scored at most. */
const mostWords = 12

/** The first token of the chat route's answer. Null if its tokens are not reported. */
export const startOf = Effect.fnUntraced(function* (subject: SuiteSubject, question: string) {
  const read = (top_logprobs: number) =>
    put(subject, question, { max_tokens: 1, logprobs: true, top_logprobs, return_token_ids: true, return_prompt_token_ids: true })
  // A deployment may list fewer tokens than engines do by default.
  const answer = yield* Effect.catchTag(read(mostListed), "Unexpected", () => read(checkedTopTokens))
  const { ordered, promptIds, tokenChoices, usage } = answer
  const [texts = [], logprobs = []] = [tokenChoices?.[0]?.top, ordered[0]]
  if (promptIds === null || promptIds.length !== usage.prompt_tokens || texts.length !== logprobs.length) return null
  const listed = texts.map((text, at): ListedToken => ({ text: text.trim(), logprob: logprobs[at] ?? 0 })).toSorted((a, b) => b.logprob - a.logprob)
  return { question, prompt: promptIds, listed }
})

/** Texts of a token in vocabularies, with and without the blank before it. */
const spelled = (text: string) => [text, `▁${text}`, `Ġ${text}`]

/** The log-probability of each token with the text of a word, from a score of each. Words without such tokens are left out. */
const scored = Effect.fnUntraced(function* (subject: SuiteSubject, tokenizer: PinnedTokenizer, { listed, prompt }: KnownStart) {
  const words = wordsAmong(listed).slice(0, mostWords)
  const ids = yield* tokenizer.find(words.flatMap(({ text }) => spelled(text)))
  const own = (at: number) => [...new Set(ids.slice(3 * at, 3 * at + 3).flatMap((id) => (id === null ? [] : [id])))]
  const scores = yield* Effect.forEach(
    words,
    ({ text }, at) =>
      Effect.map(
        Effect.forEach(own(at), (id) => scoreOf(subject, [...prompt, id])),
        (values): FirstWord => ({ text, logprobs: values.flatMap((value) => value?.at(-1) ?? []).filter(Number.isFinite) })
      ),
    { concurrency: Math.min(8, subject.slots) }
  )
  return scores.filter(({ logprobs }) => logprobs.length > 0)
})

/** Log-probabilities from which on a token counts in a comparison: less likely ones are drawn too rarely. */
const leastListed = Math.log(0.01)

/** The likeliest token of each word. Lists may leave out the others. */
const likeliestOf = (words: ReadonlyArray<FirstWord>): ReadonlyArray<ListedToken> =>
  words.map(({ logprobs, text }) => ({ text, logprob: Math.max(...logprobs) }))

/** The largest distance of tokens from a list, in nats of a likely word. */
export const furthest = (some: ReadonlyArray<ListedToken>, others: ReadonlyArray<ListedToken>): number => {
  const after = new Map(wordsAmong(others).map(({ logprobs, text }) => [text, Math.max(...logprobs)]))
  const distances = some.flatMap(({ logprob, text }) =>
    isWord(text) && logprob >= leastListed ? [Math.abs(logprob - (after.get(text) ?? Number.NEGATIVE_INFINITY))] : []
  )
  return Math.max(0, ...distances)
}

const informationOf = ({ listed }: KnownStart) => temperatureSplit(wordsAmong(listed), listed)?.information ?? 0

/** A question whose first token is uncertain, and the splits of its words. Null if there is none, or if its tokens are not known. */
export const knownStart = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const { tokenizer } = subject.repository
  if (tokenizer === null) return null
  const words = yield* vocabularyWords(subject, "path draws", questions * named)
  const starts: Array<KnownStart> = []
  for (let at = 0; at < questions; at++) {
    const own = words.slice(at * named, (at + 1) * named)
    const start = yield* startOf(subject, at % 2 === 0 ? `Say one of these words: ${own.join(", ")}.` : `Tell a long story about ${own.join(", ")}.`)
    if (start !== null && isWord(start.listed[0]?.text ?? "")) starts.push(start)
  }
  const [chosen] = starts.toSorted((a, b) => informationOf(b) - informationOf(a))
  if (chosen === undefined) return null
  // Draws reuse the cached prompt, which engines may compute with other kernels.
  const best = yield* startOf(subject, chosen.question)
  if (best === null) return null
  const scores = yield* scored(subject, tokenizer, best)
  if (furthest([...likeliestOf(wordsAmong(chosen.listed)), ...likeliestOf(scores)], best.listed) > thresholds.mostUncached) return null
  const temperature = temperatureSplit(scores, best.listed)
  const isTelling = temperature !== null && temperature.information >= thresholds.leastInformation
  const splits: ReadonlyArray<Split> = [...(isTelling ? [temperature] : []), ...cutSplits(best.listed)]
  return { ...best, splits }
})
