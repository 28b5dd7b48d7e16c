import { checkedTopTokens } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { textPath } from "../Subject.ts"
import { type TrialCheck, unexpected } from "./Check.ts"
import { chatObeys, choicesStreamed } from "./chatSampling.ts"
import { type Pair, penaltiesObeyed, rareOf } from "./penalties.ts"
import { continuation, type Fields, goOn, type Prompt, type SuiteSubject, secondsOf } from "./SuiteSubject.ts"
import { drawnPrompts } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const decodeChoices = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ choices: Schema.Array(Schema.Struct({ text: Schema.String })) })))

/** Settings that cut off all but the likeliest token at a temperature of 2, or that lower the temperature. */
const cuts = [
  ["temperature", 0.01],
  ["top_k", 1],
  ["top_p", 1e-6],
  ["min_p", 1]
] as const

/** Number of prompts that are tried to find one with a certain beginning of its answer. */
const tried = 8

interface Sure {
  readonly prompt: Prompt
  readonly steps: number
}

/**
 * The number of steps for which an answer is certain: up to the first step with two nearly equally likely tokens.
 * Logits of 16 bits are often equal, and then the sort order of the engine decides. Without log-probabilities every
 * step counts as certain.
 */
const sureBeginning = Effect.fnUntraced(function* (subject: SuiteSubject, prompts: ReadonlyArray<Prompt>) {
  let longest: Sure | null = null
  for (const prompt of prompts) {
    const { tops } = yield* goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, logprobs: checkedTopTokens })
    const unsure = (tops ?? []).findIndex((top) => {
      const [best = 0, second = Number.NEGATIVE_INFINITY] = top.toSorted((a, b) => b - a)
      return best - second < thresholds.sureBy
    })
    const steps = unsure === -1 ? (tops?.length ?? 8) : unsure
    if (longest === null || steps > longest.steps) longest = { prompt, steps }
    if (steps >= 4) break
  }
  return longest
})

/** A setting that cuts off all but the likeliest token leads to the greedy answer, for as long as that is certain. */
const cutsToGreedy = Effect.fnUntraced(function* (subject: SuiteSubject, prompts: ReadonlyArray<Prompt>, offered: ReadonlySet<string>) {
  const sure = yield* sureBeginning(subject, prompts)
  if (sure === null || sure.steps === 0) return
  const answer = (fields: object) => goOn(subject, sure.prompt, { max_tokens: sure.steps, ignore_eos: true, ...fields })
  const greedily = yield* answer({})
  for (const [name, value] of cuts.filter(([each]) => each === "temperature" || offered.has(each))) {
    // One draw may be the likeliest answer by chance.
    for (const seed of [1, 2, 3]) {
      const { content } = yield* answer({ temperature: 2, seed, [name]: value })
      if (content !== greedily.content) return yield* unexpected(`${name} ${value} is not greedy`)
    }
  }
})

/** Several choices are drawn independently: at that temperature two are rarely equal. */
const choicesDiffer = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt) {
  for (let seed = 1; seed <= 4; seed++) {
    const body = continuation(subject, prompt, { max_tokens: 8, ignore_eos: true, temperature: 2, seed, n: 2 })
    const { status, text } = yield* subject.client.post(textPath, JSON.stringify(body))
    if (status !== 200) return yield* unexpected(`HTTP ${status} for n 2`, { status })
    const { choices } = Option.getOrElse(decodeChoices(text), () => ({ choices: [] }))
    if (choices.length !== 2) return yield* unexpected(`${choices.length} choices for n 2`)
    if (choices[0]?.text !== choices[1]?.text) return yield* choicesStreamed(subject, textPath, body)
  }
  return yield* unexpected("the two choices for n 2 are always the same")
})

/**
 * Seeds give different answers, and the same seed the same answer if the engine promises that. A model may be certain how
 * a prompt goes on, so one prompt with different answers suffices. Succeeds with that one.
 */
const seedsDiffer = Effect.fnUntraced(function* (subject: SuiteSubject, prompts: ReadonlyArray<Prompt>) {
  const { seeds } = extentOf(subject.parameters)
  let most = 0
  for (const prompt of prompts) {
    const sampled = (seed: number) => goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, temperature: 1, seed })
    const answers = yield* Effect.forEach(
      Array.from({ length: seeds }, (_, seed) => seed + 1),
      sampled
    )
    const different = new Set(answers.map(({ content }) => content)).size
    most = Math.max(most, different)
    if (different < thresholds.differentSeeds) continue
    if (!subject.offers.seeds) return { prompt, figures: `${different} different of ${seeds}` }
    const again = yield* sampled(1)
    if (again.content !== answers[0]?.content) return yield* unexpected("the same seed gives a different answer")
    return { prompt, figures: `${different} different of ${seeds}, seeds repeat` }
  }
  return yield* unexpected(`${most} different answers of ${seeds} at temperature 1`)
})

/**
 * A bias removes the first token of an answer, and brings another one back. Succeeds with that one, if it has an id.
 */
const biasIsObeyed = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, first: number) {
  const biased = (id: number, bias: number) =>
    Effect.map(goOn(subject, prompt, { max_tokens: 1, ignore_eos: true, return_token_ids: true, logit_bias: { [String(id)]: bias } }), ({ ids }) => ids?.[0])
  const second = yield* biased(first, -100)
  if (second === first) return yield* unexpected("a logit bias of -100 changes nothing")
  if (second !== undefined && (yield* biased(second, 100)) !== second) return yield* unexpected("a logit bias of 100 changes nothing")
  return second
})

/**
 * Sampling settings are obeyed: temperature, seeds, settings that cut off unlikely tokens, `logit_bias`, `n` and
 * penalties.
 */
export const samplingObeyed: TrialCheck = {
  name: "sampling_obeyed",
  class: "required",
  purpose: "Temperature, seed, top_k, top_p, min_p, logit_bias, n and penalties have their effect",
  limitSeconds: secondsOf(60, 1),
  run: Effect.fnUntraced(function* (subject) {
    const offered: ReadonlySet<string> = new Set(subject.capabilities.supported_parameters_by_endpoint[textPath] ?? [])
    const prompts = yield* drawnPrompts(subject, "sampling_obeyed", tried)
    const { figures, prompt } = yield* seedsDiffer(subject, prompts)
    const greedily = yield* goOn(subject, prompt, { max_tokens: 8, ignore_eos: true, return_token_ids: true })
    yield* cutsToGreedy(subject, prompts, offered)
    if (offered.has("n")) yield* choicesDiffer(subject, prompt)
    if (subject.chat) yield* chatObeys(subject)
    const [first] = greedily.ids ?? []
    if (first === undefined) return figures
    const second = yield* biasIsObeyed(subject, prompt, first)
    if (second === undefined) return figures
    const asking = { ask: (fields: Fields) => goOn(subject, prompt, fields), prompt: typeof prompt === "string" ? null : prompt }
    const rare = rareOf(subject, [first, second, ...(asking.prompt ?? [])], 2)
    const pairs: ReadonlyArray<Pair> = [
      [first, second],
      [second, first],
      ...rare.map((each): Pair => [each, first]),
      ...rare.map((each): Pair => [each, second])
    ]
    const shown = yield* penaltiesObeyed(asking, pairs, offered)
    return shown.length === 0 ? figures : `${figures}; ${shown.join(", ")}`
  })
}
