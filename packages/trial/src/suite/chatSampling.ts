import { streamEvents } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { decodeFrame, type EngineUnreachable, type Unexpected } from "../engineAnswers.ts"
import { unexpected } from "./Check.ts"
import { type Asking, oneOf, type Pair, penaltiesObeyed, rareOf, tie } from "./penalties.ts"
import { readAnswer } from "./readAnswer.ts"
import { chatPath, type Fields, put, questionOf, type SuiteSubject, salted, withoutThinking } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

/** A question of this trial with many possible answers. */
const storyOf = (subject: SuiteSubject) => Effect.map(vocabularyWords(subject, "story", 2), (words) => `Tell a long story about ${words.join(" and ")}.`)

/** Drawn rare tokens may form an answer that a parser of the engine rejects. */
const readable = (subject: SuiteSubject, words: string, fields: Fields) =>
  put(subject, words, fields).pipe(Effect.catchTag("Unexpected", () => Effect.succeed(null)))

type Draw = (seed: number) => Effect.Effect<string | null, EngineUnreachable | Unexpected>

/** Up to three drawn answers that differ from the greedy one. Fails if eight seeds draw none. */
const otherThanGreedy = Effect.fnUntraced(function* (draw: Draw, greedily: string | null) {
  const drawn: Array<readonly [seed: number, answer: string]> = []
  let unread = 0
  for (let seed = 1; seed <= 8 && drawn.length < 3; seed++) {
    const answer = yield* draw(seed)
    if (answer === null) unread++
    else if (answer !== greedily) drawn.push([seed, answer])
  }
  return drawn.length === 0 && unread < 8 ? yield* unexpected("on the chat route temperature 2 is greedy") : drawn
})

/** Temperature, seed and bias reach the sampler. */
const draws = Effect.fnUntraced(function* (subject: SuiteSubject, words: string) {
  // Among rare tokens some are about equally likely, regardless of how certain the model is of its answer.
  const from = Math.floor(subject.vocabSize / 2)
  const logit_bias = Object.fromEntries(Array.from({ length: Math.min(20, subject.vocabSize - from) }, (_, at) => [String(from + at), 100]))
  const drawTokens = (fields: object) =>
    Effect.map(readable(subject, words, { max_tokens: 16, ignore_eos: true, ...fields }), (answer) => answer && `${answer.reasoning}\n${answer.content}`)
  const drawnWith = (seed: number) => drawTokens({ logit_bias, temperature: 2, seed })
  const unbiased = yield* drawTokens({})
  const greedily = yield* drawTokens({ logit_bias })
  if (greedily !== null && greedily.trim() !== "" && greedily === unbiased) return yield* unexpected("on the chat route a logit bias of 100 changes nothing")
  const drawn = yield* otherThanGreedy(drawnWith, greedily)
  if (drawn.length === 0 || !subject.offers.seeds) return
  // Later requests may read computed values from the cache, which can change one of many draws.
  for (const [seed, answer] of drawn) if ((yield* drawnWith(seed)) === answer) return
  return yield* unexpected("on the chat route the same seed gives a different answer")
})

const decodeChoices = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ choices: Schema.Array(Schema.Unknown) })))

/** A stream has the requested number of answers, and each has its own end. */
export const choicesStreamed = Effect.fnUntraced(function* (subject: SuiteSubject, path: string, body: object) {
  const { status, text } = yield* subject.client.post(path, JSON.stringify({ ...body, stream: true }))
  if (status !== 200) return yield* unexpected(`HTTP ${status} for n 2, streamed`, { status })
  const ended = streamEvents(text)
    .flatMap((data) => Option.toArray(decodeFrame(data)))
    .flatMap(({ choices }) => choices.flatMap(({ finish_reason, index }) => (finish_reason == null || index == null ? [] : [index])))
  return ended.toSorted().join() === "0,1" ? undefined : yield* unexpected(`${ended.length} choices for n 2, streamed`)
})

/** The response has the requested number of answers. Another check compares them. */
const choicesCome = Effect.fnUntraced(function* (subject: SuiteSubject, words: string) {
  let refused = 0
  // A drawn answer may have a form that a parser of the engine rejects.
  for (let seed = 1; seed <= 4; seed++) {
    const [path, body] = questionOf(subject, words, { max_tokens: 4, ignore_eos: true, temperature: 1, seed, n: 2 })
    const { status, text } = yield* subject.client.post(path, JSON.stringify(body))
    const count = Option.getOrNull(decodeChoices(text))?.choices.length ?? 0
    if (status === 200 && count !== 2) return yield* unexpected(`on the chat route ${count} choices for n 2`)
    if (status === 200) return yield* choicesStreamed(subject, path, body)
    refused = status
  }
  return yield* unexpected(`on the chat route HTTP ${refused} for n 2`, { status: refused })
})

/** Settings that leave only the likeliest token, at a temperature at which others would be drawn. */
const cuts = [
  ["top_k", 1],
  ["top_p", 1e-6],
  ["min_p", 1]
] as const

/**
 * Given two tokens of which the first is clearly likelier at each step, some seeds draw the second, and none does if
 * all but the likeliest are cut off.
 */
const cutsObeyed = Effect.fnUntraced(function* (asking: Asking, pairs: ReadonlyArray<Pair>, offered: ReadonlySet<string>) {
  for (const pair of pairs) {
    const tied = yield* tie(asking, pair)
    if (tied === null) continue
    // Halfway between no preference and the tie, so that both tokens are drawn.
    const drawn = (seed: number, fields: object = {}) =>
      Effect.map(oneOf(asking, pair, tied + thresholds.sureBy, { temperature: 2, seed, ...fields }), (ids) => ids?.some((id) => id !== pair[0]) ?? false)
    const seeds: Array<number> = []
    for (let seed = 1; seed <= 8 && seeds.length < 3; seed++) if (yield* drawn(seed)) seeds.push(seed)
    if (seeds.length === 0) continue
    for (const [name, value] of cuts.filter(([each]) => offered.has(each))) {
      for (const seed of seeds) if (yield* drawn(seed, { [name]: value })) return yield* unexpected(`on the chat route ${name} ${value} is not greedy`)
    }
    return
  }
})

/** Sampling settings reach the sampler on the chat route too, which most requests use. */
export const chatObeys = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const offered: ReadonlySet<string> = new Set(subject.capabilities.supported_parameters_by_endpoint[chatPath] ?? [])
  const words = yield* storyOf(subject)
  yield* draws(subject, words)
  if (offered.has("n")) yield* choicesCome(subject, words)
  const single = yield* readable(subject, words, { max_tokens: 1, ignore_eos: true, return_token_ids: true })
  const asking: Asking = { ask: (fields) => readable(subject, words, fields), prompt: single?.promptIds ?? null }
  const [one = 0, two = 0, three = 0, four = 0] = rareOf(subject, asking.prompt ?? [], 4)
  const pairs: ReadonlyArray<Pair> = [
    [one, two],
    [two, one],
    [three, four],
    [four, three]
  ]
  yield* cutsObeyed(asking, pairs, offered)
  yield* penaltiesObeyed(asking, pairs, offered, "on the chat route ")
  if (!offered.has("max_completion_tokens")) return
  const messages = [{ role: "user", content: words }]
  const { usage } = yield* readAnswer(subject.client, chatPath, { ...salted(subject), messages, max_completion_tokens: 3, ...withoutThinking(subject) })
  if (usage.completion_tokens > 3) return yield* unexpected(`${usage.completion_tokens} tokens for max_completion_tokens 3`)
})
