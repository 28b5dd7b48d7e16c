import { checkedTopTokens } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { textPath } from "../Subject.ts"
import { type TrialCheck, unexpected } from "./Check.ts"
import { readAnswer } from "./readAnswer.ts"
import { chatPath, continuation, goOn, type Prompt, promptOf, promptsOf, put, type SuiteSubject, salted, secondsOf, withoutThinking } from "./SuiteSubject.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const decodeChoices = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ choices: Schema.Array(Schema.Struct({ text: Schema.String })) })))

/** The largest of each that both engines take. */
const penalties = [
  ["presence_penalty", 2],
  ["frequency_penalty", 2],
  ["repetition_penalty", 2]
] as const

type Pair = readonly [first: number, second: number]

/** Of all tokens one of two, the first of which is preferred by twice so much. */
const oneOf = (subject: SuiteSubject, prompt: Prompt, [first, second]: Pair, preferred: number, fields: object = {}) => {
  const { mostPreferred } = thresholds
  const logit_bias = { [String(first)]: 100 - mostPreferred + preferred, [String(second)]: 100 - mostPreferred - preferred }
  return goOn(subject, prompt, { max_tokens: 6, ignore_eos: true, return_token_ids: true, logit_bias, ...fields })
}

/**
 * The least preference by which the first token alone is said, where with a little less the second would come after it at some step: there a penalty for what was said
 * has to change something, whatever the model. Null where there is none.
 */
const tie = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, pair: Pair) {
  /** How often the first is said before the second is; -1 where it alone is. */
  const said = (preferred: number) => Effect.map(oneOf(subject, prompt, pair, preferred), ({ ids }) => ids?.findIndex((id) => id !== pair[0]) ?? null)
  let low: number = -thresholds.mostPreferred
  let high: number = thresholds.mostPreferred
  let before = yield* said(low)
  if (before === null || before < 0 || (yield* said(high)) !== -1) return null
  while (high - low > thresholds.preference) {
    const middle = (low + high) / 2
    const times = yield* said(middle)
    if (times === -1) high = middle
    else [low, before] = [middle, times]
  }
  return before !== null && before > 0 ? high : null
})

/** Two tokens from the middle of the vocabulary that no answer begins with: how likely they are is far from how likely those are that come first. */
const rareOf = ({ vocabSize }: SuiteSubject, prompt: Prompt, used: Pair): ReadonlyArray<number> => {
  const taken = new Set([...used, ...(typeof prompt === "string" ? [] : prompt)])
  const from = Math.floor(vocabSize / 2)
  return Array.from({ length: vocabSize - from }, (_, at) => from + at)
    .filter((id) => !taken.has(id))
    .slice(0, 2)
}

/**
 * Penalties change what they have to. Gives those that were seen to. A repetition penalty multiplies, and some engines add a bias after it: of a token whose own logit is
 * next to zero it changes nothing, so that rare ones are asked for too before it is said to be ignored.
 */
const penaltiesObeyed = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, [first, second]: Pair, offered: ReadonlySet<string>) {
  const seen = new Set<string>()
  const asked = new Set<string>()
  const rare = rareOf(subject, prompt, [first, second])
  const pairs: ReadonlyArray<Pair> = [[first, second], [second, first], ...rare.map((each): Pair => [each, first]), ...rare.map((each): Pair => [each, second])]
  for (const pair of pairs) {
    const left = penalties.filter(([name]) => offered.has(name) && !seen.has(name))
    if (left.length === 0) break
    const preferred = yield* tie(subject, prompt, pair)
    if (preferred === null) continue
    for (const [name, value] of left) {
      // This one is for what stands in the prompt too.
      if (name === "repetition_penalty" && (typeof prompt === "string" || prompt.includes(pair[1]))) continue
      asked.add(name)
      const { ids } = yield* oneOf(subject, prompt, pair, preferred, { [name]: value })
      if (ids?.some((id) => id !== pair[0]) === true) seen.add(name)
    }
  }
  const ignored = [...asked].filter((name) => !seen.has(name))
  return ignored.length > 0 ? yield* unexpected(`${ignored.join(", ")} 2 changes nothing`) : [...seen]
})

/** What cuts off all but the likeliest token at the temperature of 2, or sets a lower one. */
const cuts = [
  ["temperature", 0.01],
  ["top_k", 1],
  ["top_p", 1e-6],
  ["min_p", 1]
] as const

const beginnings = [
  "The old house had a garden, and in the garden there was",
  "Every morning the baker opened the door of the shop, and",
  "The teacher wrote three numbers on the board, and then"
]

interface Sure {
  readonly prompt: Prompt
  readonly steps: number
}

/**
 * Where an answer is sure, and for how many steps: up to one at which two tokens are about as likely as each other. Logits of 16 bits are often equal, and which of two such
 * comes hangs on how an engine sorts them. Without log-probabilities nobody knows, and every step is asked for.
 */
const sureBeginning = Effect.fnUntraced(function* (subject: SuiteSubject) {
  let found: Sure | null = null
  for (const prompt of yield* promptsOf(subject, beginnings)) {
    const { tops } = yield* goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, logprobs: checkedTopTokens })
    const unsure = (tops ?? []).findIndex((top) => {
      const [best = 0, second = Number.NEGATIVE_INFINITY] = top.toSorted((a, b) => b - a)
      return best - second < thresholds.sureBy
    })
    const steps = unsure === -1 ? (tops?.length ?? 8) : unsure
    if (found === null || steps > found.steps) found = { prompt, steps }
    if (steps >= 4) break
  }
  return found
})

/** What cuts off all but the likeliest token leaves the greedy answer, where that is sure. */
const cutsToGreedy = Effect.fnUntraced(function* (subject: SuiteSubject, offered: ReadonlySet<string>) {
  const sure = yield* sureBeginning(subject)
  if (sure === null || sure.steps === 0) return
  const answer = (fields: object) => goOn(subject, sure.prompt, { max_tokens: sure.steps, ignore_eos: true, ...fields })
  const greedily = yield* answer({})
  for (const [name, value] of cuts.filter(([each]) => each === "temperature" || offered.has(each))) {
    // One draw of what is likely may be the likeliest by itself.
    for (const seed of [1, 2, 3]) {
      const { content } = yield* answer({ temperature: 2, seed, [name]: value })
      if (content !== greedily.content) return yield* unexpected(`${name} ${value} is not greedy`)
    }
  }
})

/** Several answers are answers of their own: at that temperature two are rarely the same. */
const choicesDiffer = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt) {
  for (let seed = 1; seed <= 4; seed++) {
    const body = continuation(subject, prompt, { max_tokens: 8, ignore_eos: true, temperature: 2, seed, n: 2 })
    const { status, text } = yield* subject.client.post(textPath, JSON.stringify(body))
    if (status !== 200) return yield* unexpected(`HTTP ${status} for n 2`)
    const { choices } = Option.getOrElse(decodeChoices(text), () => ({ choices: [] }))
    if (choices.length !== 2) return yield* unexpected(`${choices.length} choices for n 2`)
    if (choices[0]?.text !== choices[1]?.text) return
  }
  return yield* unexpected("the two choices for n 2 are always the same")
})

/** On the chat route too, which most requests take, what is set reaches the sampler. */
const chatObeys = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const words = "Tell a long story."
  // Of tokens that are all rare some are about as likely as each other, however sure the model is of its answer.
  const from = Math.floor(subject.vocabSize / 2)
  const logit_bias = Object.fromEntries(Array.from({ length: Math.min(20, subject.vocabSize - from) }, (_, at) => [String(from + at), 100]))
  // What is drawn of them may be in no form that a reader of answers takes.
  const said = (fields: object) =>
    put(subject, words, { max_tokens: 16, ignore_eos: true, logit_bias, ...fields }).pipe(
      Effect.map(({ content, reasoning }) => `${reasoning}\n${content}`),
      Effect.catchTag("Unexpected", () => Effect.succeed(null))
    )
  const drawnWith = (seed: number) => said({ temperature: 2, seed })
  const greedily = yield* said({})
  const drawn: Array<readonly [seed: number, answer: string]> = []
  let unread = 0
  for (let seed = 1; seed <= 8 && drawn.length < 3; seed++) {
    const answer = yield* drawnWith(seed)
    if (answer === null) unread++
    else if (answer !== greedily) drawn.push([seed, answer])
  }
  if (drawn.length === 0 && unread < 8) return yield* unexpected("on the chat route temperature 2 is greedy")
  let repeats = !subject.offers.seeds || drawn.length === 0
  // What was computed before may be read from the cache then, and turn one of many draws.
  for (const [seed, answer] of drawn) repeats ||= (yield* drawnWith(seed)) === answer
  if (!repeats) return yield* unexpected("on the chat route the same seed gives another answer")
  if (!(subject.capabilities.supported_parameters_by_endpoint[chatPath] ?? []).includes("max_completion_tokens")) return
  const messages = [{ role: "user", content: words }]
  const { usage } = yield* readAnswer(subject.client, chatPath, { ...salted(subject), messages, max_completion_tokens: 3, ...withoutThinking(subject) })
  if (usage.completion_tokens > 3) return yield* unexpected(`${usage.completion_tokens} tokens for max_completion_tokens 3`)
})

/** What a request sets is obeyed: temperature, seeds, what cuts off unlikely tokens, logit_bias, n, penalties. */
export const samplingObeyed: TrialCheck = {
  name: "sampling_obeyed",
  class: "required",
  purpose: "Temperature, seed, top_k, top_p, min_p, logit_bias, n and penalties do what they say",
  limitSeconds: secondsOf(40, 1),
  run: Effect.fnUntraced(function* (subject) {
    const { seeds } = extentOf(subject.parameters)
    const offered: ReadonlySet<string> = new Set(subject.capabilities.supported_parameters_by_endpoint[textPath] ?? [])
    const prompt = yield* promptOf(subject, beginnings[0] ?? "")
    const greedily = yield* goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, return_token_ids: true })
    const sampled = (fields: object) => goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, temperature: 1, ...fields })
    const answers = yield* Effect.forEach(
      Array.from({ length: seeds }, (_, seed) => seed + 1),
      (seed) => sampled({ seed })
    )
    const different = new Set(answers.map(({ content }) => content)).size
    if (different < thresholds.differentSeeds) return yield* unexpected(`${different} different answers of ${seeds} at temperature 1`)
    if (subject.offers.seeds && (yield* sampled({ seed: 1 })).content !== answers[0]?.content) return yield* unexpected("the same seed gives another answer")
    yield* cutsToGreedy(subject, offered)
    if (offered.has("n")) yield* choicesDiffer(subject, prompt)
    if (subject.chat) yield* chatObeys(subject)
    const told = `${different} different of ${seeds}${subject.offers.seeds ? ", seeds repeat" : ""}`
    const [first] = greedily.ids ?? []
    if (first === undefined) return told
    const biased = yield* goOn(subject, prompt, { max_tokens: 1, ignore_eos: true, return_token_ids: true, logit_bias: { [String(first)]: -100 } })
    const [second] = biased.ids ?? []
    if (second === first) return yield* unexpected("a logit bias of -100 changes nothing")
    const raised =
      second === undefined
        ? biased
        : yield* goOn(subject, prompt, { max_tokens: 1, ignore_eos: true, return_token_ids: true, logit_bias: { [String(second)]: 100 } })
    if (raised.ids?.[0] !== second) return yield* unexpected("a logit bias of 100 changes nothing")
    const shown = second === undefined ? [] : yield* penaltiesObeyed(subject, prompt, [first, second], offered)
    return shown.length === 0 ? told : `${told}; ${shown.join(", ")}`
  })
}
