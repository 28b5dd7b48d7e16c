import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../../engineAnswers.ts"
import { promptTokens } from "../../promptTokens.ts"
import { textPath } from "../../Subject.ts"
import type { PinnedTokenizer } from "../readPinned.ts"
import { chatPath, continuation, type Fields, goOn, put, questionOf, type SuiteSubject, scoreOf } from "../SuiteSubject.ts"
import { drawnTexts } from "../texts/drawnTexts.ts"
import { vocabularyWords } from "../texts/vocabularyWords.ts"
import { extentOf } from "../thresholds.ts"
import { fewestTokens, mostTokens } from "./designs.ts"

/** A token and its log-probability after the prompt. `text`: its text in an answer, without surrounding blanks. */
export interface KnownToken {
  readonly id: number
  readonly text: string
  readonly logprob: number
}

/** A way to draw tokens after a prompt that is the same on each way. */
export interface DrawPath {
  readonly name: string
  readonly path: string
  readonly bodyOf: (fields: Fields) => object
}

/** A prompt with the tokens that can be drawn after it. All of them are part of it. */
export interface KnownDraws {
  readonly drawPath: DrawPath
  readonly prompt: ReadonlyArray<number>
  readonly tokens: ReadonlyArray<KnownToken>
}

/** Tokens of a cached block in most engines. Of a prompt with one token more only that one is computed for each draw. */
const block = 16
/** Number of tokens of the vocabulary at the beginning of a continued text. */
const vocabularyTokens = 8
const beyondBlocks = (length: number) => (length + block - 1) % block

const isWord = (text: string) => /^\p{L}+$/u.test(text)

/** The different words among the tokens of a text, each with its text. */
const wordsOf = Effect.fnUntraced(function* ({ repository: { tokenizer } }: SuiteSubject, ids: ReadonlyArray<number>) {
  if (tokenizer === null) return []
  const distinct = [...new Set(ids)]
  const texts = (yield* tokenizer.decode(distinct.map((id) => [id]))).map((text) => text.trim())
  return distinct
    .flatMap((id, at) => ({ id, text: texts[at] ?? "" }))
    .filter(({ text }, at) => isWord(text) && texts.indexOf(text) === at)
    .slice(0, mostTokens)
})

/**
 * Adds the log-probability of each token after a prompt, from a request for each. A token that no bias can make likely
 * is left out.
 */
const withLogprobs = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: ReadonlyArray<number>, words: ReadonlyArray<Omit<KnownToken, "logprob">>) {
  const scored = yield* Effect.forEach(
    words,
    (word) => Effect.map(scoreOf(subject, [...prompt, word.id]), (values) => ({ ...word, logprob: values?.at(-1) ?? Number.NaN })),
    { concurrency: Math.min(8, subject.slots) }
  )
  return scored.filter(({ logprob }) => logprob > -30)
})

/** The log-probabilities of two tokens after a prompt. */
export const logprobsAfter = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: ReadonlyArray<number>, ids: ReadonlyArray<number>) {
  const scored = yield* withLogprobs(
    subject,
    prompt,
    ids.map((id) => ({ id, text: "" }))
  )
  return new Map(scored.map(({ id, logprob }) => [id, logprob]))
})

const knownAfter = Effect.fnUntraced(function* (subject: SuiteSubject, drawPath: DrawPath, prompt: ReadonlyArray<number>, text: ReadonlyArray<number>) {
  const tokens = yield* withLogprobs(subject, prompt, yield* wordsOf(subject, text))
  return tokens.length < fewestTokens ? [] : [{ drawPath, prompt, tokens }]
})

/** The tokens after a text of this trial, as the engine continues texts. */
const ofTexts = Effect.fnUntraced(function* (subject: SuiteSubject, text: ReadonlyArray<number>) {
  // Later draws find the text in the cache.
  yield* goOn(subject, text, { max_tokens: 1 })
  return yield* knownAfter(subject, { name: "texts", path: textPath, bodyOf: (fields) => continuation(subject, text, fields) }, text, text)
})

/** The text of an answer of one token that a bias makes certain; null if the engine rejects its form. */
const saidFor = (subject: SuiteSubject, words: string, id: number) =>
  put(subject, words, { max_tokens: 1, ignore_eos: true, logit_bias: { [String(id)]: 100 } }).pipe(
    Effect.map(({ content, reasoning }) => `${reasoning}${content}`.trim()),
    Effect.catchTag("Unexpected", () => Effect.succeed(null))
  )

/** The tokens of the prompt of a message; null if the engine does not report them. It is in the cache afterwards. */
const promptOfMessage = (subject: SuiteSubject, words: string) =>
  Effect.map(put(subject, words, { max_tokens: 1, return_token_ids: true, return_prompt_token_ids: true }), ({ promptIds }) => promptIds)

/**
 * The tokens after the same text as a message. None if the engine does not report the tokens of the prompt, or if a
 * parser of the engine hides an answer that is one word.
 */
const ofMessages = Effect.fnUntraced(function* (subject: SuiteSubject, tokenizer: PinnedTokenizer, text: ReadonlyArray<number>) {
  const shorter = Effect.fnUntraced(function* (by: number) {
    const [words = ""] = yield* tokenizer.decode([text.slice(0, text.length - by)])
    return { words, prompt: (yield* promptOfMessage(subject, words)) ?? [] }
  })
  const complete = yield* shorter(0)
  const { prompt, words } = yield* shorter(beyondBlocks(complete.prompt.length))
  const askedIds = text.filter((id) => prompt.includes(id))
  if (askedIds.length === 0) return []
  const drawPath: DrawPath = { name: "messages", path: chatPath, bodyOf: (fields) => questionOf(subject, words, fields)[1] }
  const known = yield* knownAfter(subject, drawPath, prompt, askedIds)
  const [first] = known[0]?.tokens ?? []
  return first !== undefined && (yield* saidFor(subject, words, first.id)) === first.text ? known : []
})

/** What can be drawn on the paths that obey a bias; empty without a tokenizer, log-probabilities or enough words. */
export const knownDraws = Effect.fnUntraced(function* (subject: SuiteSubject): Effect.fn.Return<ReadonlyArray<KnownDraws>, EngineUnreachable | Unexpected> {
  const { capabilities, chat, maxContext, parameters, repository, seed } = subject
  const { tokenizer } = repository
  if (tokenizer === null) return []
  const most = Math.min(extentOf(parameters).drawnAfter, Math.floor(maxContext / 4))
  const drawn = drawnTexts(seed, 1)
  const [whole = []] = yield* tokenizer.encode(drawn, true)
  const words = yield* vocabularyWords(subject, "sampling_distribution", vocabularyTokens)
  const [plain = []] = yield* tokenizer.encode([`${words.join(" ")}. ${drawn[0]}`], false)
  const isBiased = (path: string) => capabilities.supported_parameters_by_endpoint[path]?.includes("logit_bias") === true
  // Tokens from anywhere in the vocabulary, so that no engine can know the prompt from a corpus.
  const [first = 0, ...rest] = whole
  const mixed = [first, ...promptTokens(subject.vocabSize, vocabularyTokens, seed), ...rest]
  const texts = isBiased(textPath) ? yield* ofTexts(subject, mixed.slice(0, most - beyondBlocks(most))) : []
  return chat && isBiased(chatPath) ? [...texts, ...(yield* ofMessages(subject, tokenizer, plain.slice(0, most)))] : texts
})
