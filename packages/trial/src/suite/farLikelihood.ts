import { Effect } from "effect"
import { drawer } from "../promptTokens.ts"
import { NotApplicable, type TrialCheck, unexpected } from "./Check.ts"
import { fingerprintPrompts } from "./fingerprints.ts"
import { type SuiteSubject, scoreOf } from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"
import { extentOf, thresholds } from "./thresholds.ts"

type Ids = ReadonlyArray<number>

/** Tokens that stay free at the end of the context, because engines reserve some. */
const unfilled = 16

/** The length of the prompt that fills the context. */
const filledLength = ({ maxContext }: SuiteSubject): number => Math.min(maxContext, thresholds.farLongest) - unfilled

/** A text at its place in the prompt that fills the context. */
interface PlacedText {
  readonly from: number
  readonly ids: Ids
}

/** The tokens with which every prompt of the model begins, and the suite's texts without them. */
const encodeTexts = Effect.fnUntraced(function* ({ repository: { tokenizer } }: SuiteSubject) {
  if (tokenizer === null) return yield* new NotApplicable({ reason: "no tokenizer.json that we read" })
  const [start = []] = yield* tokenizer.encode([""], true)
  const texts = yield* tokenizer.encode(
    likelihoodTexts.map(({ text }) => text),
    false
  )
  const sentences = yield* tokenizer.encode(
    fingerprintPrompts.map((prompt) => `${prompt}\n`),
    false
  )
  return { start, sentences: sentences.filter((ids) => ids.length > 0), texts: texts.filter((ids) => ids.length >= thresholds.farWindow) }
})

/** The beginnings of some texts, spread over the context. The last text ends where the prompt ends. */
const placeTexts = (subject: SuiteSubject, start: Ids, texts: ReadonlyArray<Ids>): ReadonlyArray<PlacedText> => {
  const { farTexts, likelihoodTokens } = extentOf(subject.parameters)
  const room = filledLength(subject) - start.length
  const count = Math.min(farTexts, texts.length, Math.floor(room / (thresholds.farWindow + thresholds.farBefore)))
  return texts.slice(0, count).map((text, index) => {
    const ids = text.slice(0, Math.min(likelihoodTokens, Math.floor(room / count) - thresholds.farBefore))
    return { from: start.length + Math.floor((room * (index + 1)) / count) - ids.length, ids }
  })
}

/** The prompt that fills the context: the texts at their places, and other sentences before and between them. */
const fillContext = (start: Ids, placed: ReadonlyArray<PlacedText>, sentences: ReadonlyArray<Ids>, seed: number): Ids => {
  const last = placed.at(-1)
  const length = last === undefined ? 0 : last.from + last.ids.length
  const filled = [...start]
  const draw = drawer(seed)
  while (sentences.length > 0 && filled.length < length) filled.push(...(sentences[draw(sentences.length)] ?? []))
  for (const { from, ids } of placed) filled.splice(from, ids.length, ...ids)
  return filled.slice(0, length)
}

const score = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Ids) {
  const values = yield* scoreOf(subject, prompt)
  if (values === null) return yield* new NotApplicable({ reason: "no log-probabilities of prompts" })
  const wrong = values.filter((value) => !Number.isFinite(value)).length + prompt.length - 1 - values.length
  return wrong === 0 ? values : yield* unexpected(`${wrong} of ${prompt.length - 1} values are no log-probabilities`)
})

/** How much less likely a window of a text is at its place than near the start. */
interface FarWindow {
  readonly position: number
  readonly worse: number
}

const compareWindows = (near: Ids, far: Ids, from: number): ReadonlyArray<FarWindow> =>
  Array.from({ length: Math.floor(near.length / thresholds.farWindow) }, (_, index) => {
    const at = index * thresholds.farWindow
    const differences = near.slice(at, at + thresholds.farWindow).map((value, offset) => value - (far[at + offset] ?? 0))
    return { position: from + at, worse: differences.reduce((sum, value) => sum + value, 0) / differences.length }
  })

/**
 * Each window of a text is as likely anywhere in the context as near its start, with the same tokens before it. The
 * check needs no reference and asks for no ability. A copy of random tokens would ask for one: small sound models copy
 * them worse the more of the context is filled.
 */
export const farLikelihood: TrialCheck = {
  name: "far_likelihood",
  class: "required",
  purpose: "Texts are as likely in the whole served context as near its start",
  limitSeconds: ({ maxContext }) => 60 + Math.min(maxContext, thresholds.farLongest) / 300,
  skipped: ({ maxContext }) => (maxContext < 256 ? "context below 256" : null),
  run: Effect.fnUntraced(function* (subject) {
    const { sentences, start, texts } = yield* encodeTexts(subject)
    const placed = placeTexts(subject, start, texts)
    if (placed.length === 0) return yield* new NotApplicable({ reason: "the tokenizer has too few ids for the texts" })
    const filled = fillContext(start, placed, sentences, subject.seed)
    const far = yield* score(subject, filled)
    const windows: Array<FarWindow> = []
    for (const { from, ids } of placed) {
      const before = filled.slice(Math.max(start.length, from - thresholds.farBefore), from)
      const near = yield* score(subject, [...start, ...before, ...ids])
      windows.push(...compareWindows(near.slice(-ids.length), far.slice(from - 1, from - 1 + ids.length), from))
    }
    const worst = windows.reduce((most, each) => (each.worse > most.worse ? each : most))
    const figures = `${worst.worse.toFixed(2)} nats a token less likely at position ${worst.position} than near the start`
    if (worst.worse > thresholds.farWorse) {
      return yield* unexpected(`${figures}, expected at most ${thresholds.farWorse.toFixed(2)}`, { cause: "far_positions" })
    }
    return `${windows.length} windows up to position ${filled.length}, at most ${figures}`
  })
}
