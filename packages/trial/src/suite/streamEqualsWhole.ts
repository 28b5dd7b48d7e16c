import { Effect } from "effect"
import type { Answer, StreamedAnswer } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { cutTo } from "./pathPrompts.ts"
import type { Reading } from "./readAnswer.ts"
import { continuation, type Fields, goOn, mayThink, type Prompt, promptOf, put, putStreamed, type SuiteSubject } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"
import { drawnPrompts, vocabularyWords } from "./texts/vocabularyWords.ts"
import { extentOf } from "./thresholds.ts"

const streamPrompts = [
  "Say hello in three languages.",
  "Répète: 🚢⚓️👩‍🚀 naïve",
  "请用中文写一句话。",
  "Write three short words, one below the other.",
  "Répète: café, 東京, 👍🏽, ½",
  "Напиши одно короткое предложение."
]

const same = (one: Answer, other: Answer): boolean =>
  one.content === other.content && one.reasoning === other.reasoning && one.finishReason === other.finishReason

const broken = (text: string) => text.split("\ufffd").length - 1

/** A stream has each part once: one finish reason, one usage chunk, and one end. `at`: the place in the message. */
const hasEachPartOnce = ({ done, finishReasons, usageFrames }: StreamedAnswer, at: string) => {
  if (finishReasons !== 1) return unexpected(`${at}: ${finishReasons} finish reasons`)
  if (usageFrames !== 1) return unexpected(`${at}: ${usageFrames} usage chunks`)
  return done ? Effect.void : unexpected(`${at}: the stream does not end with one [DONE]`)
}

/** Compares a stream with the whole answer. Succeeds with whether the answer repeats, so that it can be compared. */
const compareMessage = Effect.fnUntraced(function* (subject: SuiteSubject, words: string, fields: Fields, at: string) {
  const complete = yield* put(subject, words, fields)
  const streamed = yield* putStreamed(subject, words, fields)
  if (subject.chat && streamed.roles !== 1) return yield* unexpected(`${at}: ${streamed.roles} roles`)
  yield* hasEachPartOnce(streamed, at)
  if (!same(complete, streamed)) {
    // If the answer changes between requests, it cannot be compared with a stream. Another check covers that.
    if (!same(complete, yield* put(subject, words, fields))) return false
    return yield* unexpected(`${at}: ${streamed.content.length} characters streamed, ${complete.content.length} whole`)
  }
  if (streamed.usage.completion_tokens !== complete.usage.completion_tokens)
    return yield* unexpected(`${at}: the streamed answer has other token counts than the whole answer`)
  return true
})

/** Whether characters are broken in the answer that its tokens have whole. */
const breaksCharacters = Effect.fnUntraced(function* ({ repository: { tokenizer } }: SuiteSubject, { content, ids }: Reading) {
  if (ids === null || tokenizer === null) return false
  const [decoded] = yield* tokenizer.decode([ids])
  return decoded !== undefined && broken(content) > broken(decoded)
})

/** Compares a streamed continuation of a text with the whole one. `kind`: the kind of the text. */
const compareText = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, fields: Fields, kind: string) {
  // A tokenizer without ids for these characters cannot split them.
  if (prompt.length === 0) return
  const complete = yield* goOn(subject, prompt, fields)
  const streamed = yield* subject.client.stream(textPath, continuation(subject, prompt, fields))
  yield* hasEachPartOnce(streamed, kind)
  if (yield* breaksCharacters(subject, complete)) return yield* unexpected(`${kind}: the stream breaks characters that are complete in the tokens`)
  if (!same(complete, streamed) && same(complete, yield* goOn(subject, prompt, fields)))
    return yield* unexpected(`${kind}: the streamed text differs from the whole answer`)
})

/** A stream has the same content as the whole answer, and each part once: role, pieces, end, usage, `[DONE]`. */
export const streamEqualsWhole: TrialCheck = {
  name: "stream_equals_whole",
  class: "required",
  purpose: "A stream has exactly the content of the whole answer, and ends correctly",
  limitSeconds: seconds(30),
  run: Effect.fnUntraced(function* (subject) {
    const max_tokens = Math.min(32, Math.floor(subject.maxContext / 4))
    const prompts = streamPrompts.slice(0, extentOf(subject.parameters).streamedPrompts)
    const added = yield* vocabularyWords(subject, "stream_equals_whole", prompts.length)
    const repeats = yield* Effect.forEach(prompts, (words, index) => compareMessage(subject, `${words} ${added[index]}`, { max_tokens }, `prompt ${index + 1}`))
    // The last chunk of a cut answer has text; after an end token it may have none. A parser of reasoning may keep so short a beginning back.
    const cut = { max_tokens: cutTo, ignore_eos: true }
    if (!mayThink(subject)) repeats.push(yield* compareMessage(subject, `${prompts[0]} ${added[0]}`, cut, "a cut answer"))
    // Characters of several tokens, which a chat model of one language may never write by itself.
    const fields = { max_tokens: Math.min(16, max_tokens), return_token_ids: true }
    for (const { kind, text } of likelihoodTexts.filter((each) => each.kind === "cyrillic" || each.kind === "chinese")) {
      const from = seedOf(subject.seed, kind) % Math.floor(text.length / 2)
      yield* compareText(subject, yield* promptOf(subject, text.slice(from, from + Math.min(60, Math.floor(subject.maxContext / 8)))), fields, kind)
    }
    for (const prompt of yield* drawnPrompts(subject, "stream_equals_whole", 1)) yield* compareText(subject, prompt, fields, "a drawn text")
    const unsteady = repeats.filter((isRepeated) => !isRepeated).length
    return `${repeats.length - unsteady} answers${unsteady === 0 ? "" : `, ${unsteady} more do not repeat`}`
  })
}
