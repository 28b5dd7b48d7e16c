import { monotonicMillis } from "@seatrial/domain"
import { Effect } from "effect"
import { gauge } from "../gauge.ts"
import { promptTokens } from "../promptTokens.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { codeOf } from "./codes.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import { continuation, goOn, promptsOf, type SuiteSubject } from "./SuiteSubject.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const fields = { max_tokens: 24, ignore_eos: true, logprobs: 1, return_token_ids: true }

/** The size of the KV cache in tokens, and the number of requests that exceed it. Fails if they cannot be sent. */
const planPressure = Effect.fnUntraced(function* (subject: SuiteSubject, metrics: string) {
  const tokens = subject.cacheTokens(metrics)
  if (tokens === null) return yield* new NotApplicable({ reason: "the engine does not report its KV cache" })
  const count = Math.ceil((thresholds.pressure * tokens) / subject.maxContext)
  if (count > extentOf(subject.parameters).pressureRequests) return yield* new NotApplicable({ reason: `it would take ${count} requests` })
  if (count > subject.slots || subject.maxContext < 128) return yield* new NotApplicable({ reason: `${subject.slots} sequences cannot fill it` })
  return { tokens, count }
})

/** A long prompt that ends with a unique code. Makes its ids for each use: together, the prompts are large. */
interface CodedPrompt {
  readonly code: string
  readonly makeIds: () => ReadonlyArray<number>
}

const codedPrompts = Effect.fnUntraced(function* (subject: SuiteSubject, count: number) {
  const codes = Array.from({ length: count }, (_, index) => codeOf(index))
  const endings = yield* promptsOf(
    subject,
    codes.map((code) => `Repeat this code: ${code}\nCode: ${code}\nCode:`)
  )
  return codes.map((code, index): CodedPrompt => {
    const ending = endings[index]
    const ids = ending === undefined || typeof ending === "string" ? [] : ending
    return { code, makeIds: () => [...promptTokens(subject.vocabSize, subject.maxContext - 96, 500 + index), ...ids] }
  })
})

interface PressedAnswer extends CodedPrompt {
  readonly answer: Reading
}

/** No answer holds the code of another request, and the first one keeps its own code. */
const codesStay = Effect.fnUntraced(function* (answers: ReadonlyArray<PressedAnswer>, first: Reading) {
  const leaks = answers.filter(({ answer, code }) => answers.some((other) => other.code !== code && answer.content.includes(other.code))).length
  if (leaks > 0) return yield* unexpected(`${leaks} of ${answers.length} answers held another request's code`, { code: "cross_request_leak" })
  const [pressed] = answers
  if (pressed !== undefined && first.content.includes(pressed.code) && !pressed.answer.content.includes(pressed.code)) {
    return yield* unexpected("an answer lost its code under pressure")
  }
})

/**
 * The mean and the largest difference, in nats, between the log-probabilities of an answer and of its text as a prompt;
 * null if not comparable.
 */
const recomputed = Effect.fnUntraced(function* (subject: SuiteSubject, { answer: { ids: written, logprobs }, makeIds }: PressedAnswer) {
  if (written === null || logprobs === null) return null
  const ids = makeIds()
  const scored = yield* goOn(subject, [...ids, ...written], { max_tokens: 1, ...subject.offers.scoring })
  const read = scored.promptLogprobs?.slice(ids.length - 1) ?? []
  if (read.length !== logprobs.length) return null
  const differences = logprobs.map((value, at) => Math.abs(value - (read[at] ?? Number.NaN)))
  return { mean: differences.reduce((sum, value) => sum + value, 0) / differences.length, worst: Math.max(...differences) }
})

/**
 * The latest requests are preempted first: their recomputed tokens must have the same log-probabilities as when the
 * text is read as a prompt. Succeeds with the number of compared answers.
 */
const latestAreRight = Effect.fnUntraced(function* (subject: SuiteSubject, answers: ReadonlyArray<PressedAnswer>) {
  let judged = 0
  for (const [index, pressed] of [...answers.entries()].slice(-2)) {
    const shift = yield* recomputed(subject, pressed)
    if (shift === null) continue
    judged++
    if (!(shift.mean <= thresholds.decodeMean && shift.worst <= thresholds.decodeWorst)) {
      return yield* unexpected(
        `answer ${index + 1}: its log-probabilities differ by ${shift.mean.toFixed(3)} nats in the mean when the engine reads it as a prompt`
      )
    }
  }
  return judged
})

/**
 * Requests that exceed the KV cache: preempted requests are computed again with the same result. `most`: time limit in
 * seconds.
 */
export const kvPressure = (most: number = thresholds.pressureSeconds): TrialCheck => ({
  name: "kv_pressure",
  class: "required",
  purpose: "Answers stay right if the KV cache is too small for all requests",
  limitSeconds: seconds(most),
  run: Effect.fnUntraced(function* (subject) {
    const before = (yield* subject.client.get("/metrics")).text
    const { count, tokens } = yield* planPressure(subject, before)
    const prompts = yield* codedPrompts(subject, count)
    const begunAt = yield* monotonicMillis
    const first = yield* goOn(subject, prompts[0]?.makeIds() ?? [], fields)
    const each = (yield* monotonicMillis) - begunAt
    if (each * count > most * 500) return yield* new NotApplicable({ reason: `it would take ${Math.round((each * count) / 1000)} s` })
    const answers = yield* Effect.forEach(
      prompts,
      (prompt) =>
        Effect.map(readAnswer(subject.client, textPath, continuation(subject, prompt.makeIds(), fields)), (answer): PressedAnswer => ({ ...prompt, answer })),
      { concurrency: "unbounded" }
    )
    yield* codesStay(answers, first)
    const judged = yield* latestAreRight(subject, answers)
    const short = answers.filter(({ answer }) => answer.usage.completion_tokens !== fields.max_tokens).length
    if (short > 0) return yield* unexpected(`${short} of ${count} answers are short`)
    const preempted = (metrics: string) => gauge(metrics, subject.metrics.preemptions)
    const [then, now] = [preempted(before), preempted((yield* subject.client.get("/metrics")).text)]
    return `${count} requests for ${tokens} tokens, ${then === null || now === null ? "" : `${now - then} preempted, `}${judged} answers read again`
  })
})
