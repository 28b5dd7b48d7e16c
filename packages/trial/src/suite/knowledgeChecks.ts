import { Effect } from "effect"
import { drawer } from "../promptTokens.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { goOn, promptsOf, put, roomFor, type SuiteSubject, secondsOf } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
import { goldenQuestions } from "./texts/goldenQuestions.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** A broken model may be fluent and know nothing. A sound model may know nothing too, so this only informs. */
export const goldenAnswers: TrialCheck = {
  name: "golden_answers",
  class: "informs",
  purpose: "The model knows what a model of its size knows: capitals, sums, copying, sorting",
  limitSeconds: seconds(40),
  run: Effect.fnUntraced(function* (subject) {
    const questions = goldenQuestions.slice(0, extentOf(subject.parameters).goldenQuestions)
    let right = 0
    const prompts = yield* promptsOf(
      subject,
      questions.map(({ prompt }) => prompt)
    )
    for (const [index, { answer, prompt }] of questions.entries()) {
      const { content } = yield* goOn(subject, prompts[index] ?? prompt, { max_tokens: 12, stop: ["\n"] })
      if (content.trim().startsWith(answer)) right++
    }
    const share = thresholds.golden.find(({ parameters }) => subject.parameters >= parameters)?.share ?? 0
    const needed = Math.ceil(share * questions.length - 1e-9)
    const figures = `${right} of ${questions.length} right, ${needed} expected`
    return right < needed ? yield* unexpected(`${figures}; informs only`) : figures
  })
}

const sanePrompts = [
  "Tell me a long story.",
  "Describe a street in a small town on a rainy morning, from one end to the other.",
  "Explain how a bicycle works to somebody who has never seen one.",
  "What does a gardener do in each of the four seasons?"
]

const control = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/u
const foreign = /\p{L}/u
const latin = /\p{Script=Latin}/u
const bad = (character: string) =>
  (control.test(character) && character !== "\n" && character !== "\t" && character !== "\u200d") || (foreign.test(character) && !latin.test(character))

/** The share of the most common run of five words, and of one repeated character. */
const repetition = (text: string): { readonly run: number; readonly character: number } => {
  const words = text.split(/\s+/u).filter((word) => word !== "")
  const runs = new Map<string, number>()
  for (let at = 0; at + 5 <= words.length; at++) {
    const run = words.slice(at, at + 5).join(" ")
    runs.set(run, (runs.get(run) ?? 0) + 1)
  }
  const most = Math.max(0, ...runs.values())
  const characters = new Map<string, number>()
  for (const character of text) characters.set(character, (characters.get(character) ?? 0) + 1)
  return {
    run: runs.size + most < 12 ? 0 : most / (words.length - 4),
    character: text.length < 16 ? 0 : Math.max(0, ...characters.values()) / [...text].length
  }
}

/**
 * NaN, wrong kernels and wrong vocabularies produce garbage. A weak model may repeat itself and answer in its own
 * language too, so this only informs.
 */
export const outputSane: TrialCheck = {
  name: "output_sane",
  class: "informs",
  purpose: "Answers are text in the expected script, neither garbage nor repetition",
  limitSeconds: seconds(30),
  run: Effect.fnUntraced(function* (subject) {
    const max_tokens = Math.min(extentOf(subject.parameters).saneTokens, Math.floor(subject.maxContext / 4))
    const informs = (detail: string) => unexpected(`${detail}; informs only`)
    let characters = 0
    for (const [index, prompt] of sanePrompts.entries()) {
      const { content, finishReason, reasoning, usage } = yield* put(subject, prompt, { max_tokens })
      // A character that the limit cuts is not a fault.
      const text = finishReason === "length" ? `${reasoning}${content}`.replace(/\ufffd+$/u, "") : `${reasoning}${content}`
      const all = [...text]
      characters += all.length
      const at = `prompt ${index + 1}`
      if (text.includes("\ufffd")) return yield* informs(`${at}: broken characters`)
      const strange = all.filter(bad).length
      if (strange > (1 - thresholds.printable) * all.length)
        return yield* informs(`${at}: ${strange} of ${all.length} characters are not of the expected script`)
      const { character, run } = repetition(text)
      // Without a template a model continues a text, and greedy decoding often falls into a loop.
      if (run >= (subject.chat ? thresholds.commonestRun : thresholds.commonestRunOfText) || character >= 0.6)
        return yield* informs(`${at}: one repeated piece is ${Math.round(100 * Math.max(run, character))}% of ${usage.completion_tokens} tokens`)
    }
    return characters === 0 ? yield* informs(`${sanePrompts.length} empty answers`) : `${sanePrompts.length} answers, ${characters} characters`
  })
}

const places = [0.1, 0.5, 0.9] as const

const sentences = likelihoodTexts.slice(0, 3).flatMap(({ text }) => text.split(/(?<=\.) /u))

/** Characters per token in such text. */
const charactersPerToken = ({ repository: { tokenizer } }: SuiteSubject): Effect.Effect<number> => {
  const sample = sentences.slice(0, 20).join(" ")
  return tokenizer === null ? Effect.succeed(3) : Effect.map(tokenizer.encode([sample], false), ([ids = []]) => sample.length / Math.max(1, ids.length))
}

/** A text of about this many characters with a key at the given place, followed by the question. */
const haystack = (subject: SuiteSubject, length: number, place: number, key: string): string => {
  const filler: Array<string> = []
  for (let at = subject.seed % sentences.length, sum = 0; sum < length; at++) {
    const sentence = sentences[at % sentences.length] ?? ""
    filler.push(sentence)
    sum += sentence.length + 1
  }
  filler.splice(Math.floor(filler.length * place), 0, `The secret key is ${key}.`)
  return `${filler.join(" ")} What is the secret key?${subject.chat ? "" : "\nThe secret key is"}`
}

/**
 * How far back a model finds information in its prompt. Small models find little even with a sound engine, so this only
 * informs.
 */
export const needle: TrialCheck = {
  name: "needle",
  class: "informs",
  purpose: "A key is found at the beginning, in the middle and at the end of a long text",
  limitSeconds: (subject) => secondsOf(60 + subject.maxContext / 300, 9)(subject),
  skipped: ({ maxContext }) => (maxContext < 512 ? "context below 512" : null),
  run: Effect.fnUntraced(function* (subject) {
    const extent = extentOf(subject.parameters)
    const shortest = Math.min(extent.needleTokens, Math.floor(subject.maxContext / 3))
    const max_tokens = Math.min(roomFor(subject, 24), Math.floor(subject.maxContext / 4))
    const room = subject.maxContext - 160 - max_tokens
    const lengths = [
      shortest,
      ...(extent.needleTokens < 1_000 ? [] : [Math.floor(room / 2), Math.floor(room * 0.85)].filter((length) => length > shortest * 2))
    ]
    const perToken = yield* charactersPerToken(subject)
    const draw = drawer(seedOf(subject.seed, "needle"))
    const keys = places.map(() => String(100_000 + draw(900_000)))
    const counts: Array<number> = []
    for (const length of lengths) {
      let count = 0
      for (const [index, place] of places.entries()) {
        const key = keys[index] ?? ""
        const { content, reasoning } = yield* put(subject, haystack(subject, length * perToken, place, key), { max_tokens })
        if (`${reasoning} ${content}`.includes(key)) count++
      }
      counts.push(count)
    }
    const needed = subject.parameters >= thresholds.needle.parameters ? thresholds.needle.found : thresholds.needle.foundBySmaller
    const figures = lengths.map((length, index) => `${counts[index]} of 3 in ${length}`).join(", ")
    return (counts[0] ?? 0) < needed ? yield* unexpected(`${figures} tokens, ${needed} expected; informs only`) : `${figures} tokens`
  })
}
