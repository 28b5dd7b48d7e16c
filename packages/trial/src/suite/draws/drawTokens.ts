import { reasoningOf, streamEvents } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { decodeFrame } from "../../engineAnswers.ts"
import { unexpected } from "../Check.ts"
import type { Fields, SuiteSubject } from "../SuiteSubject.ts"
import type { DrawPath } from "./knownTokens.ts"

/** Drawn answers of one request at most. */
const mostChoices = 32

/** The text of each choice in an answer or in the frames of a stream, without blanks around it. */
export const choiceTexts = (parts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const texts = new Map<number, string>()
  for (const { delta, index, message, text } of parts.flatMap((part) => Option.toArray(decodeFrame(part))).flatMap(({ choices }) => choices)) {
    const piece = `${reasoningOf(delta ?? message)}${delta?.content ?? message?.content ?? text ?? ""}`
    texts.set(index ?? 0, `${texts.get(index ?? 0) ?? ""}${piece}`)
  }
  return [...texts.values()].map((each) => each.trim())
}

export interface Drawing {
  readonly count: number
  readonly streamed: boolean
  /** The seed of the first request; null: no request has one. */
  readonly seed: number | null
  readonly fields: Fields
}

/** Draws answers, several with each request if the engine supports it, and as many at the same time as it runs. */
export const drawTokens = Effect.fnUntraced(function* (subject: SuiteSubject, { bodyOf, name, path }: DrawPath, { count, fields, seed, streamed }: Drawing) {
  const offered = subject.capabilities.supported_parameters_by_endpoint[path] ?? []
  const n = offered.includes("n") ? Math.max(1, Math.min(mostChoices, subject.slots)) : 1
  const draw = Effect.fnUntraced(function* (request: number) {
    // Without a seed, engines draw in other code than with one.
    const seeded = { seed: seed === null ? undefined : seed + request * mostChoices }
    const body = bodyOf({ ...fields, ...seeded, n, ignore_eos: true, ...(streamed ? { stream: true } : {}) })
    const { status, text } = yield* subject.client.post(path, JSON.stringify(body))
    if (status !== 200) return yield* unexpected(`${name}: HTTP ${status} for drawn tokens`, { status })
    return choiceTexts(streamed ? streamEvents(text) : [text])
  })
  const requests = Array.from({ length: Math.ceil(count / n) }, (_, request) => request)
  return (yield* Effect.forEach(requests, draw, { concurrency: Math.max(1, Math.floor(Math.min(mostChoices, subject.slots) / n)) })).flat()
})
