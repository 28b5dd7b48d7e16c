import type { CompletionCounts } from "@seatrial/domain"
import { Effect } from "effect"
import type { Answer } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { endIdsOf } from "./identityChecks.ts"
import {
  continuation,
  type Fields,
  goOn,
  promptOf,
  put,
  putStreamed,
  roomFor,
  type SuiteSubject,
  secondsOf,
  stillThinks,
  thinksAnyway,
  together
} from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const sums = ({ completion_tokens, prompt_tokens, total_tokens }: CompletionCounts) => total_tokens === prompt_tokens + completion_tokens

/** Token counts are exact: they match the request, whole and streamed, and the sums are right. */
export const usageExact: TrialCheck = {
  name: "usage_exact",
  class: "required",
  purpose: "Token counts are exact: of prompts, of answers, whole and streamed",
  limitSeconds: seconds(15),
  run: Effect.fnUntraced(function* (subject) {
    const words = "Count upwards in words."
    const prompts = new Set<number>()
    const judge = (usage: CompletionCounts, asked: number | null) => {
      prompts.add(usage.prompt_tokens)
      if (asked !== null && usage.completion_tokens !== asked) return unexpected(`${usage.completion_tokens} completion tokens, asked for ${asked}`)
      if (!sums(usage)) return unexpected(`total ${usage.total_tokens} is not ${usage.prompt_tokens} + ${usage.completion_tokens}`)
      return usage.prompt_tokens < 1 ? unexpected("no prompt tokens") : Effect.void
    }
    const counts = [1, 2, 7, 33].filter((count) => count * 4 <= subject.maxContext)
    for (const max_tokens of counts) {
      const answer = yield* put(subject, words, { max_tokens, ignore_eos: true, return_token_ids: true })
      yield* judge(answer.usage, max_tokens)
      if (answer.ids !== null && answer.ids.length !== max_tokens) return yield* unexpected(`${answer.ids.length} token ids, asked for ${max_tokens}`)
      if ((answer.cached ?? 0) > answer.usage.prompt_tokens) return yield* unexpected(`${answer.cached} cached of ${answer.usage.prompt_tokens} prompt tokens`)
      yield* judge((yield* putStreamed(subject, words, { max_tokens, ignore_eos: true })).usage, max_tokens)
    }
    if (prompts.size !== 1) return yield* unexpected(`the same prompt was counted in ${prompts.size} ways`)
    // If an answer ends early by itself, its last token counts too, and with `ignore_eos` it continues.
    prompts.clear()
    const brief = "Answer with one word."
    const longest = counts.at(-1) ?? 1
    const natural = yield* put(subject, brief, { max_tokens: longest, return_token_ids: true })
    yield* judge(natural.usage, natural.ids?.length ?? null)
    const streamed = yield* putStreamed(subject, brief, { max_tokens: longest })
    yield* judge(streamed.usage, natural.content === streamed.content ? natural.usage.completion_tokens : null)
    yield* judge((yield* put(subject, brief, { max_tokens: longest, ignore_eos: true })).usage, longest)
    if (prompts.size !== 1) return yield* unexpected(`the same prompt was counted in ${prompts.size} ways`)
    const ids = yield* promptOf(subject, words)
    if (typeof ids !== "string") {
      const { usage } = yield* goOn(subject, ids, { max_tokens: 1, ignore_eos: true })
      if (usage.completion_tokens !== 1) return yield* unexpected(`${usage.completion_tokens} tokens of a text, asked for 1`)
      if (usage.prompt_tokens !== ids.length) return yield* unexpected(`${usage.prompt_tokens} prompt tokens for ${ids.length} ids`)
    }
    return `${counts.length * 2 + 3} answers`
  })
}

const wordPrompts = ["Answer with one word.", "Say yes.", "What is the capital of France? Answer in one word."]

/**
 * An answer ends for the reason that it reports, at an end token. The check does not require that the model writes one
 * in time.
 */
export const finishReasons: TrialCheck = {
  name: "finish_reasons",
  class: "required",
  purpose: "Answers end for the reported reason, stop at an end token, and contain no marks of the template",
  limitSeconds: secondsOf(15, 3),
  run: Effect.fnUntraced(function* (subject) {
    for (const max_tokens of [1, 5]) {
      const { finishReason } = yield* put(subject, "Tell a long story.", { max_tokens, ignore_eos: true })
      if (finishReason !== "length") return yield* unexpected(`${finishReason} where the limit of ${max_tokens} was reached`)
    }
    const limit = roomFor(subject, Math.min(thresholds.wordTokens, Math.floor(subject.maxContext / 4)))
    const ends = endIdsOf(subject.repository)
    let stopped = 0
    let thinking = 0
    for (const prompt of wordPrompts) {
      const answer = yield* put(subject, prompt, { max_tokens: limit, return_token_ids: true })
      const { content, finishReason, ids, usage } = answer
      // If an end token fills the limit, engines report different reasons.
      const passed = ids?.findIndex((id) => ends.has(id)) ?? -1
      if (passed !== -1 && passed < usage.completion_tokens - 1)
        return yield* unexpected(`an answer of ${usage.completion_tokens} tokens goes on past end token ${passed + 1}`)
      const full = usage.completion_tokens >= limit
      if (finishReason !== "stop" && !(full && finishReason === "length")) return yield* unexpected(`${finishReason} after ${usage.completion_tokens} tokens`)
      if (finishReason === "stop") stopped++
      if (stillThinks(answer)) thinking++
      const marks = (subject.repository.tokenizer?.special ?? []).filter((special) => special !== "" && content.includes(special)).length
      if (marks > 0) return yield* unexpected(`${marks} marks of the template in an answer`)
      if (stopped > 0) break
    }
    return stopped > 0 ? "ends by itself" : thinking > 0 ? `still thinks after ${limit} tokens` : `no answer ends by itself within ${limit} tokens`
  })
}

const streamPrompts = [
  "Say hello in three languages.",
  "Répète: 🚢⚓️👩‍🚀 naïve",
  "请用中文写一句话。",
  "Write three short words, one below the other.",
  "Répète: café, 東京, 👍🏽, ½",
  "Напиши одно короткое предложение."
]

const same = (one: Answer, other: Answer) => one.content === other.content && one.reasoning === other.reasoning && one.finishReason === other.finishReason

const broken = (text: string) => text.split("\ufffd").length - 1

/** A stream has the same content as the whole answer, and each part once: role, pieces, end, usage, `[DONE]`. */
export const streamEqualsWhole: TrialCheck = {
  name: "stream_equals_whole",
  class: "required",
  purpose: "A stream has exactly the content of the whole answer, and ends correctly",
  limitSeconds: seconds(30),
  run: Effect.fnUntraced(function* (subject) {
    const asking = { max_tokens: Math.min(32, Math.floor(subject.maxContext / 4)) }
    const prompts = streamPrompts.slice(0, extentOf(subject.parameters).streamedPrompts)
    let unsteady = 0
    for (const [index, words] of prompts.entries()) {
      const complete = yield* put(subject, words, asking)
      const streamed = yield* putStreamed(subject, words, asking)
      const at = `prompt ${index + 1}`
      if (subject.chat && streamed.roles !== 1) return yield* unexpected(`${at}: ${streamed.roles} roles`)
      if (streamed.finishReasons !== 1) return yield* unexpected(`${at}: ${streamed.finishReasons} finish reasons`)
      if (streamed.usageFrames !== 1) return yield* unexpected(`${at}: ${streamed.usageFrames} usage chunks`)
      if (!streamed.done) return yield* unexpected(`${at}: the stream does not end with one [DONE]`)
      if (!same(complete, streamed)) {
        // If the answer changes between requests, it cannot be compared with a stream. Another check covers that.
        if (!same(complete, yield* put(subject, words, asking))) {
          unsteady++
          continue
        }
        return yield* unexpected(`${at}: ${streamed.content.length} characters streamed, ${complete.content.length} whole`)
      }
      if (streamed.usage.completion_tokens !== complete.usage.completion_tokens) return yield* unexpected(`${at}: other counts streamed than whole`)
    }
    // Characters of several tokens, which a chat model of one language may never write by itself.
    for (const { kind, text } of likelihoodTexts.filter((each) => each.kind === "cyrillic" || each.kind === "chinese")) {
      const prompt = yield* promptOf(subject, text.slice(0, Math.min(60, Math.floor(subject.maxContext / 8))))
      // A tokenizer without ids for these characters cannot split them.
      if (prompt.length === 0) continue
      const brief = { max_tokens: Math.min(16, asking.max_tokens), return_token_ids: true }
      const complete = yield* goOn(subject, prompt, brief)
      const streamed = yield* subject.client.stream(textPath, continuation(subject, prompt, brief))
      if (streamed.finishReasons !== 1) return yield* unexpected(`${kind}: ${streamed.finishReasons} finish reasons`)
      if (streamed.usageFrames !== 1) return yield* unexpected(`${kind}: ${streamed.usageFrames} usage chunks`)
      if (!streamed.done) return yield* unexpected(`${kind}: the stream does not end with one [DONE]`)
      const { tokenizer } = subject.repository
      const [meant] = complete.ids === null || tokenizer === null ? [] : yield* tokenizer.decode([complete.ids])
      if (meant !== undefined && broken(complete.content) > broken(meant)) return yield* unexpected(`${kind}: characters are broken that the tokens have whole`)
      if (!same(complete, streamed) && same(complete, yield* goOn(subject, prompt, brief))) return yield* unexpected(`${kind}: other text streamed than whole`)
    }
    return `${prompts.length - unsteady} prompts${unsteady === 0 ? "" : `, ${unsteady} more do not repeat`}`
  })
}

/** Chooses the stop string: a few characters from the middle of the answer. */
const stopIn = (text: string): string | null => {
  const characters = [...text]
  const middle = Math.floor(characters.length / 2)
  const stop = characters.slice(middle, middle + 5).join("")
  return characters.length >= 16 && stop.trim() !== "" && text.indexOf(stop) > 0 ? stop : null
}

/** A second stop string that occurs in no answer, to check that several are supported. */
const unsaid = "~|~|~"

/** A stop string ends the answer before it, and no part of it is sent. */
export const stopStrings: TrialCheck = {
  name: "stop_strings",
  class: "required",
  purpose: "A stop string ends the answer before it, and no part of it is sent, whole or streamed",
  limitSeconds: secondsOf(15, 6),
  run: Effect.fnUntraced(function* (subject: SuiteSubject) {
    let tried = 0
    const room = { max_tokens: roomFor(subject, Math.min(48, Math.floor(subject.maxContext / 4))) }
    const requests: ReadonlyArray<readonly [prompt: string, fields: Fields]> = [
      ["Count from 1 to 20.", room],
      ["Write a short recipe for vegetable soup.", room],
      // A longer answer for models that answer briefly.
      ["Write a short recipe for vegetable soup.", { ...room, ignore_eos: true }]
    ]
    for (const [prompt, fields] of requests) {
      if (tried > 0 && fields.ignore_eos === true) continue
      const { content, reasoning } = yield* put(subject, prompt, fields)
      const counted = content.includes(", 7") && !content.startsWith(", 7") && !reasoning.includes(", 7")
      const stop = counted ? ", 7" : stopIn(content)
      // In all engines a stop string in the reasoning ends the answer there.
      if (stop === null || reasoning.includes(stop)) continue
      const wanted = content.slice(0, content.indexOf(stop))
      tried++
      const ways = [put(subject, prompt, { ...fields, stop: [stop] }), putStreamed(subject, prompt, { ...fields, stop: [unsaid, stop] })] as const
      const [complete, streamed] = yield* Effect.all(ways, together(thinksAnyway(subject)))
      for (const [way, answer] of [
        ["whole", complete],
        ["streamed", streamed]
      ] as const) {
        if (answer.content !== wanted) return yield* unexpected(`${way}: ${answer.content.length} characters, ${wanted.length} before the stop string`)
        if (answer.finishReason !== "stop") return yield* unexpected(`${way}: ${answer.finishReason} at a stop string`)
      }
    }
    const text = yield* promptOf(subject, "The old house had a garden, and in the garden there was")
    const brief = { max_tokens: Math.min(32, Math.floor(subject.maxContext / 4)), ignore_eos: true }
    const { content } = yield* goOn(subject, text, brief)
    const stop = stopIn(content)
    if (stop !== null) {
      tried++
      const fields = { ...brief, stop: [unsaid, stop] }
      const cut = yield* goOn(subject, text, fields)
      const streamed = yield* subject.client.stream(textPath, continuation(subject, text, fields))
      for (const [way, answer] of [
        ["gone on with", cut],
        ["gone on with and streamed", streamed]
      ] as const) {
        if (answer.content.includes(stop)) return yield* unexpected(`of a text ${way}: ${answer.content.length} characters with the stop string`)
      }
    }
    return tried === 0 ? yield* new NotApplicable({ reason: "no answer long enough to be cut", unseen: true }) : `${tried} answers cut`
  })
}
