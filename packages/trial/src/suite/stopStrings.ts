import { Effect } from "effect"
import type { Answer } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, type TrialCheck, unexpected } from "./Check.ts"
import { continuation, type Fields, goOn, put, putStreamed, roomFor, type SuiteSubject, secondsOf, thinksAnyway, together } from "./SuiteSubject.ts"
import { drawnPrompts, vocabularyWords } from "./texts/vocabularyWords.ts"

/** Chooses the stop string: a few characters from the middle of the answer. */
const stopIn = (text: string): string | null => {
  const characters = [...text]
  const middle = Math.floor(characters.length / 2)
  const stop = characters.slice(middle, middle + 5).join("")
  return characters.length >= 16 && stop.trim() !== "" && text.indexOf(stop) > 0 ? stop : null
}

/** A second stop string that occurs in no answer, to check that several are supported. */
const unusedStop = "~|~|~"

/** The stop string for an answer; null if it has none that is long enough and outside the reasoning. */
const stopOf = ({ content, reasoning }: Answer): string | null => {
  const isCounting = content.includes(", 7") && !content.startsWith(", 7") && !reasoning.includes(", 7")
  const stop = isCounting ? ", 7" : stopIn(content)
  // In all engines a stop string in the reasoning ends the answer there.
  return stop === null || reasoning.includes(stop) ? null : stop
}

/** Whether the answer to a question, whole and streamed, ends before a stop string. False if there is none to use. */
const questionIsCut = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: string, fields: Fields) {
  const uncut = yield* put(subject, prompt, fields)
  const stop = stopOf(uncut)
  if (stop === null) return false
  const wanted = uncut.content.slice(0, uncut.content.indexOf(stop))
  const ways = [put(subject, prompt, { ...fields, stop: [stop] }), putStreamed(subject, prompt, { ...fields, stop: [unusedStop, stop] })] as const
  const [complete, streamed] = yield* Effect.all(ways, together(thinksAnyway(subject)))
  for (const [way, answer] of [
    ["whole", complete],
    ["streamed", streamed]
  ] as const) {
    if (answer.content !== wanted) return yield* unexpected(`${way}: ${answer.content.length} characters, ${wanted.length} before the stop string`)
    if (answer.finishReason !== "stop") return yield* unexpected(`${way}: finish reason ${answer.finishReason} at a stop string`)
  }
  return true
})

/** Whether the continuation of a text ends before a stop string. False if there is none to use. */
const textIsCut = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const [text = ""] = yield* drawnPrompts(subject, "stop_strings", 1)
  const brief = { max_tokens: Math.min(32, Math.floor(subject.maxContext / 4)), ignore_eos: true }
  const stop = stopIn((yield* goOn(subject, text, brief)).content)
  if (stop === null) return false
  const fields = { ...brief, stop: [unusedStop, stop] }
  const complete = yield* goOn(subject, text, fields)
  const streamed = yield* subject.client.stream(textPath, continuation(subject, text, fields))
  for (const [way, answer] of [
    ["a continued text", complete],
    ["a continued and streamed text", streamed]
  ] as const) {
    if (answer.content.includes(stop)) return yield* unexpected(`${way}: ${answer.content.length} characters that contain the stop string`)
  }
  return true
})

/** A stop string ends the answer before it, and no part of it is sent. */
export const stopStrings: TrialCheck = {
  name: "stop_strings",
  class: "required",
  purpose: "A stop string ends the answer before it, and no part of it is sent, whole or streamed",
  limitSeconds: secondsOf(15, 6),
  run: Effect.fnUntraced(function* (subject: SuiteSubject) {
    const room = { max_tokens: roomFor(subject, Math.min(48, Math.floor(subject.maxContext / 4))) }
    const recipe = `Write a short recipe for vegetable soup with ${(yield* vocabularyWords(subject, "stop_strings", 2)).join(" and ")}.`
    const counting = yield* questionIsCut(subject, "Count from 1 to 20.", room)
    const cooking = yield* questionIsCut(subject, recipe, room)
    // A longer answer for models that answer briefly.
    const longer = !counting && !cooking && (yield* questionIsCut(subject, recipe, { ...room, ignore_eos: true }))
    const tried = [counting, cooking, longer, yield* textIsCut(subject)].filter((isCut) => isCut).length
    return tried === 0 ? yield* new NotApplicable({ reason: "no answer long enough to be cut", unseen: true }) : `${tried} answers cut`
  })
}
