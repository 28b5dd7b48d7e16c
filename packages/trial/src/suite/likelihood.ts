import { Effect } from "effect"
import { promptTokens } from "../promptTokens.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { type Prompt, type SuiteSubject, scoreOf } from "./SuiteSubject.ts"
import { saltOf, seedOf } from "./saltOf.ts"
import { drawnTexts } from "./texts/drawnTexts.ts"
import { likelihoodTexts, shuffled } from "./texts/likelihoodTexts.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const fixed = (value: number, places: number) => value.toFixed(places)

/** The first tokens of each text as ids; a proportional number of characters if the tokenizer cannot be read. */
export const beginnings = ({ maxContext, parameters, repository }: SuiteSubject, texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Prompt>> => {
  const tokens = Math.min(extentOf(parameters).likelihoodTokens, Math.floor(maxContext / 2))
  return repository.tokenizer === null
    ? Effect.succeed(texts.map((text) => text.slice(0, tokens * 3)))
    : Effect.map(repository.tokenizer.encode(texts, true), (encoded) => encoded.map((ids) => ids.slice(0, tokens)))
}

/** Whether a prompt has anything to score: a tokenizer may have no ids for the letters of a text. */
export const hasScores = (prompt: Prompt): boolean => typeof prompt === "string" || prompt.length > 1

/** The scored texts. The last one is the first with its words shuffled. */
const scoredTexts = [...likelihoodTexts.map(({ text }) => text), shuffled(likelihoodTexts[0]?.text ?? "")]

/** The distance between the log-probabilities of two trials; null if they belong to different tokens. */
const shiftBetween = (now: ReadonlyArray<ReadonlyArray<number>>, earlier: ReadonlyArray<ReadonlyArray<number>>) => {
  if (now.length !== earlier.length || now.some((text, index) => text.length !== earlier[index]?.length)) return null
  const differences = now.flatMap((text, index) => text.map((value, at) => value - (earlier[index]?.[at] ?? 0)))
  return { mean: Math.abs(mean(differences)), absolute: mean(differences.map(Math.abs)) }
}

/** The log-probabilities of each text that has any. Fails if a value is not a log-probability. */
const scorePrompts = Effect.fnUntraced(function* (subject: SuiteSubject, prompts: ReadonlyArray<Prompt>) {
  const scored: Array<ReadonlyArray<number>> = []
  for (const [index, { kind }] of likelihoodTexts.entries()) {
    const prompt = prompts[index] ?? ""
    if (!hasScores(prompt)) continue
    const values = yield* scoreOf(subject, prompt)
    if (values === null) return yield* new NotApplicable({ reason: "no log-probabilities of prompts" })
    const wrong = values.filter((value) => !Number.isFinite(value) || value > thresholds.aboveZero).length
    if (wrong > 0 || values.length === 0) return yield* unexpected(`${kind}: ${wrong} of ${values.length} values are not log-probabilities`)
    scored.push(values)
  }
  return scored
})

/** The distance from an earlier trial as text; null if there is none with the same tokens. Fails if it is too large. */
const compareWithEarlier = Effect.fnUntraced(function* ({ earlier }: SuiteSubject, scored: ReadonlyArray<ReadonlyArray<number>>) {
  const before = earlier.find(({ likelihood }) => likelihood !== null)
  const shift = before?.likelihood == null ? null : shiftBetween(scored, before.likelihood)
  if (shift === null) return null
  const other = before?.otherEngine ?? null
  const shifted = `mean ${fixed(shift.mean, 4)}, absolute ${fixed(shift.absolute, 4)} from ${other === null ? "an earlier trial" : `an earlier trial of engine version ${other}`}`
  const most = other === null ? thresholds.shift : thresholds.otherEngineShift
  if (shift.mean > most.mean || shift.absolute > most.absolute)
    return yield* unexpected(`shifted by ${shifted}`, other === null ? {} : { cause: "other_engine_version" })
  return shifted
})

/**
 * Scores the suite's texts. Fails if they are too unlikely, if shuffled words do not make them less likely, or if they
 * moved too far from an earlier trial. `isCompared`: an earlier trial has scores of the same tokens. `detail`: the
 * figures as text. Passes the log-probabilities to `keep` before it compares them with an earlier trial.
 */
export const scoreLikelihood = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  keep: (likelihood: ReadonlyArray<ReadonlyArray<number>>) => void = () => undefined
) {
  const limit = thresholds.likelihoodShare * Math.log(subject.vocabSize)
  const prompts = yield* beginnings(subject, scoredTexts)
  // The first text is compared with its own words shuffled.
  if (!hasScores(prompts[0] ?? "")) return yield* new NotApplicable({ reason: "the tokenizer has no ids for prose" })
  const scored = yield* scorePrompts(subject, prompts)
  const nats = -mean(scored.flat())
  if (nats > limit) return yield* unexpected(`${fixed(nats, 2)} nats per token, expected under ${fixed(limit, 2)}`)
  const [first = []] = scored
  const worse = mean(first) - mean((yield* scoreOf(subject, prompts.at(-1) ?? "")) ?? [])
  if (!(worse >= thresholds.shuffledWorse)) return yield* unexpected(`prose with its words shuffled is only ${fixed(worse, 2)} nats per token worse`)
  keep(scored)
  const tokens = scored.reduce((sum, values) => sum + values.length, 0)
  const figures = `${fixed(nats, 3)} nats per token over ${tokens}, limit ${fixed(limit, 2)}, shuffled ${fixed(worse, 2)} worse`
  const shifted = yield* compareWithEarlier(subject, scored)
  return shifted === null ? { scored, isCompared: false, detail: figures } : { scored, isCompared: true, detail: `${figures}; ${shifted}` }
})

/**
 * Texts that only this trial has are less likely if their words are shuffled, so that no engine passes that knows the
 * texts of other trials.
 */
const drawnAreLikelier = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const drawn = drawnTexts(subject.seed, extentOf(subject.parameters).drawnTexts)
  const scores: Array<{ readonly whole: number; readonly mixed: number }> = []
  for (const text of drawn) {
    const [whole = [], mixed = []] = yield* Effect.forEach(yield* beginnings(subject, [text, shuffled(text)]), (prompt) =>
      Effect.map(scoreOf(subject, prompt), (values) => values ?? [])
    )
    scores.push({ whole: mean(whole), mixed: mean(mixed) })
  }
  const worse = mean(scores.map(({ mixed, whole }) => whole - mixed))
  if (!(worse >= thresholds.shuffledWorse))
    return yield* unexpected(`texts of this trial with their words shuffled are only ${fixed(worse, 2)} nats per token worse`)
  return `${drawn.length} drawn texts ${fixed(-mean(scores.map(({ whole }) => whole)), 2)}, shuffled ${fixed(worse, 2)} worse`
})

/** Number of texts that are scored again. */
const scoredAgain = 2

/**
 * Constant texts are as likely if as many tokens of this trial follow them, because later tokens change no earlier one.
 * Half of such a prompt is new, so an engine fails if it computes only those prompts correctly that it knows most of.
 */
const knownTextsStay = Effect.fnUntraced(function* (subject: SuiteSubject, scored: ReadonlyArray<ReadonlyArray<number>>) {
  const prompts = (yield* beginnings(subject, scoredTexts.slice(0, likelihoodTexts.length))).filter(hasScores)
  const differences: Array<number> = []
  for (let each = 0; each < scoredAgain; each++) {
    const at = (seedOf(subject.seed, "text_likelihood") + each) % prompts.length
    const [prompt = "", before = []] = [prompts[at], scored[at]]
    if (typeof prompt === "string") return "not scored again"
    const following = Math.min(prompt.length, subject.maxContext - prompt.length - 8)
    const added = promptTokens(subject.vocabSize, following, seedOf(subject.seed, `after text ${each}`))
    const values = yield* scoreOf({ ...subject, salt: saltOf(subject.salt, each) }, [...prompt, ...added])
    differences.push(...before.map((value, token) => (values?.[token] ?? Number.NaN) - value))
  }
  const [shift, absolute] = [Math.abs(mean(differences)), mean(differences.map(Math.abs))]
  const figures = `${fixed(shift, 4)} and ${fixed(absolute, 4)} absolute if tokens follow`
  const most = thresholds.otherEngineShift
  return shift <= most.mean && absolute <= most.absolute ? figures : yield* unexpected(figures)
})

/** The texts are as likely as they must be. The check passes their log-probabilities to `keep`, for later trials. */
export const textLikelihood = (keep: (likelihood: ReadonlyArray<ReadonlyArray<number>>) => void): TrialCheck => ({
  name: "text_likelihood",
  class: "required",
  purpose: "The suite's texts are as likely as with right weights and positions, and as at an earlier trial",
  limitSeconds: seconds(60),
  run: Effect.fnUntraced(function* (subject) {
    const { detail, scored } = yield* scoreLikelihood(subject, keep)
    const figures = `${detail}; ${yield* knownTextsStay(subject, scored)}`
    return extentOf(subject.parameters).drawnTexts === 0 ? figures : `${figures}; ${yield* drawnAreLikelier(subject)}`
  })
})
