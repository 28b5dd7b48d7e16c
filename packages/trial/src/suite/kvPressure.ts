import { monotonicMillis } from "@seatrial/domain"
import { Duration, Effect, Option } from "effect"
import { gauge } from "../gauge.ts"
import { promptTokens } from "../promptTokens.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { drawnCodes } from "./codes.ts"
import { type CountedTokens, countedTokens, leadIn } from "./countedTokens.ts"
import { shiftsOf } from "./decodeShifts.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import { continuation, type Fields, goOn, promptsOf, type SuiteSubject } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** Tokens of a prompt that ends with a code, of an answer that may repeat it, and at the end of the context. */
const [codeTokens, leastAnswer, unfilled] = [72, 24, 8]

/** The requests that exceed the KV cache. `running`: about how many of them run before the cache is full. */
interface Pressure {
  readonly tokens: number
  readonly count: number
  readonly promptLength: number
  readonly answerLength: number
  readonly running: number
}

/**
 * Plans requests that exceed the cache while they generate: an engine starts a request only if its whole prompt fits, so
 * prompts alone preempt nothing. Shorter prompts leave less of the cache unused when no more fit, and need less time.
 * The answers of the running requests exceed the unused part: together they have four times the length of a prompt.
 * Null if so many requests cannot be sent.
 */
export const planPressure = (tokens: number, most: number, room: number): Pressure | null => {
  const answerFor = (promptLength: number) => Math.ceil((4 * promptLength ** 2) / tokens) + leastAnswer
  const wanted = Math.ceil(Math.max(4 * Math.sqrt(tokens), (thresholds.pressure * tokens) / most))
  const answerLength = answerFor(Math.min(wanted, room))
  const promptLength = Math.min(wanted, room - answerLength)
  const count = Math.ceil((thresholds.pressure * tokens) / promptLength)
  const running = Math.floor(tokens / promptLength)
  // A request that runs alone is never preempted.
  return promptLength <= codeTokens || count > most || running < 2 ? null : { tokens, count, promptLength, answerLength, running }
}

/** The plan for an engine. Fails if its cache cannot be exceeded. */
const planFor = Effect.fnUntraced(function* (subject: SuiteSubject, metrics: string) {
  const tokens = subject.cacheTokens(metrics)
  if (tokens === null) return yield* new NotApplicable({ reason: "the engine does not report its KV cache" })
  const most = Math.min(extentOf(subject.parameters).pressureRequests, subject.slots)
  const plan = planPressure(tokens, most, Math.min(subject.maxContext, thresholds.farLongest) - unfilled)
  return plan ?? (yield* new NotApplicable({ reason: `${most} sequences cannot fill it` }))
})

/** A long prompt that ends with a unique code. Makes its ids for each use: together, the prompts are large. */
interface CodedPrompt {
  readonly code: string
  readonly makeIds: () => ReadonlyArray<number>
}

const codedPrompts = Effect.fnUntraced(function* (subject: SuiteSubject, { count, promptLength }: Pressure) {
  const codes = drawnCodes(subject.seed, "kv_pressure", count)
  const endings = yield* promptsOf(
    subject,
    codes.map((code) => `Repeat this code: ${code}\nCode: ${code}\nCode:`)
  )
  return codes.map((code, index): CodedPrompt => {
    const ending = endings[index]
    const ids = ending === undefined || typeof ending === "string" ? [] : ending
    return { code, makeIds: () => [...promptTokens(subject.vocabSize, promptLength - codeTokens, seedOf(subject.seed, `kv_pressure ${index}`)), ...ids] }
  })
})

interface PressedAnswer extends CodedPrompt {
  /** Whether the request had the fields of `CountedTokens`, so that its answer does not repeat the code. */
  readonly isCounted: boolean
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
 * Preempted requests end after those that ran with them, and before those that waited. `finished`: answers in the
 * order in which they ended. Their tokens must have the same log-probabilities as when the text is read as a prompt.
 * Succeeds with the number of compared answers.
 */
const preemptedAreRight = Effect.fnUntraced(function* (subject: SuiteSubject, finished: ReadonlyArray<PressedAnswer>, running: number) {
  let judged = 0
  const from = Math.max(0, Math.min(running, finished.length) - thresholds.pressureJudged)
  for (const [index, { answer, makeIds }] of finished.slice(from, from + thresholds.pressureJudged).entries()) {
    // Engines differ in whether they report an end token.
    if (answer.finishReason === "stop" && answer.ids?.length !== answer.logprobs?.length) continue
    const shifts = (yield* shiftsOf(subject, makeIds(), answer))?.map(Math.abs)
    if (shifts === undefined) continue
    judged++
    const mean = shifts.reduce((sum, value) => sum + value, 0) / Math.max(1, shifts.length)
    const worst = Math.max(...shifts)
    if (!(mean <= thresholds.decodeMean && worst <= thresholds.decodeWorst)) {
      return yield* unexpected(
        `answer ${from + index + 1}: its log-probabilities differ by ${mean.toFixed(3)} nats in the mean and ${worst.toFixed(3)} at one token when the engine reads it as a prompt`
      )
    }
  }
  return judged
})

/**
 * Preempted requests keep the tokens that a frequency penalty counted. What a model prefers depends on the prompt, so the
 * largest leads are compared with the same requests alone. Succeeds with the number of requests with a penalty.
 */
const countsStay = Effect.fnUntraced(function* (subject: SuiteSubject, finished: ReadonlyArray<PressedAnswer>, { fields, mostLead, pair }: CountedTokens) {
  const leads = finished.flatMap(({ answer: { ids }, isCounted, makeIds }) => (isCounted && ids !== null ? [{ lead: leadIn(ids, pair), makeIds }] : []))
  const largest = leads.filter(({ lead }) => lead > mostLead).toSorted((one, other) => other.lead - one.lead)
  let wrong = 0
  for (const { lead, makeIds } of largest.slice(0, thresholds.pressureJudged)) {
    const { ids } = yield* goOn(subject, makeIds(), fields)
    if (ids !== null && lead > leadIn(ids, pair) + thresholds.leadApart) wrong++
  }
  if (wrong > 0) return yield* unexpected(`${wrong} of ${leads.length} answers were written as if a frequency penalty forgot earlier tokens`)
  return leads.length
})

/**
 * Sends all requests at once, every second one to count tokens if the engine can. Succeeds with the answers in the order
 * in which they ended.
 */
const press = Effect.fnUntraced(function* (subject: SuiteSubject, prompts: ReadonlyArray<CodedPrompt>, fields: Fields, counted: CountedTokens | null) {
  const finished: Array<PressedAnswer> = []
  const send = (prompt: CodedPrompt, index: number) => {
    const own = index % 2 === 1 ? counted?.fields : undefined
    return Effect.map(readAnswer(subject.client, textPath, continuation(subject, prompt.makeIds(), own ?? fields)), (answer) => {
      finished.push({ ...prompt, isCounted: own !== undefined, answer })
    })
  }
  yield* Effect.forEach(prompts, send, { concurrency: "unbounded", discard: true })
  return finished
})

/** The time to find a pair of tokens to count: half of what the prompts leave. Engines with few slots write long answers. */
const countedTime = (most: number) => Duration.seconds((most * (1 - thresholds.pressureShare)) / 2)

/** Answers of this length. If an engine reserves memory for fixed lengths, they may end earlier. */
const fieldsFor = ({ offers }: SuiteSubject, max_tokens: number): Fields => ({
  max_tokens,
  logprobs: 1,
  return_token_ids: true,
  ignore_eos: offers.reservesFixedLengths !== true
})

/** All answers have the requested length, in every form in which they report it. */
const areComplete = Effect.fnUntraced(function* ({ offers }: SuiteSubject, finished: ReadonlyArray<PressedAnswer>, answerLength: number) {
  const unequal = finished.filter(({ answer: { finishReason, ids, logprobs, usage } }) => {
    const lengths = [usage.completion_tokens, ids?.length ?? answerLength, logprobs?.length ?? answerLength]
    return lengths.some((length) => length !== answerLength) && !(offers.reservesFixedLengths === true && finishReason === "stop")
  }).length
  if (unequal > 0) return yield* unexpected(`${unequal} of ${finished.length} answers have another length than requested`)
})

/** The preemptions that the engine counted. Engines may report none before the first one. */
const preemptionsIn = ({ metrics }: SuiteSubject, text: string): number => gauge(text, metrics.preemptions) ?? 0

/**
 * Requests that exceed the KV cache: preempted requests are computed again with the same result. Does not apply if the
 * engine counted no preemption, because such requests were never judged. `most`: time limit in seconds.
 */
export const kvPressure = (most: number = thresholds.pressureSeconds): TrialCheck => ({
  name: "kv_pressure",
  class: "required",
  purpose: "Answers stay right if the KV cache is too small for all requests",
  limitSeconds: seconds(most),
  run: Effect.fnUntraced(function* (subject) {
    const before = (yield* subject.client.get("/metrics")).text
    const plan = yield* planFor(subject, before)
    const { answerLength, count, running, tokens } = plan
    const prompts = yield* codedPrompts(subject, plan)
    const [alone] = prompts
    const begunAt = yield* monotonicMillis
    yield* goOn(subject, alone?.makeIds() ?? [], { max_tokens: 1 })
    const each = (yield* monotonicMillis) - begunAt
    const millis = each * count
    if (millis > most * 1_000 * thresholds.pressureShare) return yield* new NotApplicable({ reason: `it would take ${Math.round(millis / 1000)} s` })
    const first = yield* goOn(subject, alone?.makeIds() ?? [], { max_tokens: leastAnswer, ignore_eos: true })
    const counted = yield* Effect.timeoutOption(countedTokens(subject, prompts.at(-1)?.makeIds() ?? [], answerLength), countedTime(most)).pipe(
      Effect.map(Option.getOrNull)
    )
    const finished = yield* press(subject, prompts, fieldsFor(subject, answerLength), counted)
    const penalized = counted === null ? 0 : yield* countsStay(subject, finished, counted)
    const coded = finished.filter(({ isCounted }) => !isCounted)
    yield* codesStay(
      coded.toSorted((a, b) => (a.code === alone?.code ? -1 : b.code === alone?.code ? 1 : 0)),
      first
    )
    yield* areComplete(subject, finished, answerLength)
    const judged = yield* preemptedAreRight(subject, coded, Math.ceil((running * coded.length) / count))
    const preempted = preemptionsIn(subject, (yield* subject.client.get("/metrics")).text) - preemptionsIn(subject, before)
    if (preempted <= 0) return yield* new NotApplicable({ reason: "no preemption was counted" })
    if (judged + penalized === 0) return yield* new NotApplicable({ reason: "no log-probabilities with token ids" })
    return `${count} requests for ${tokens} tokens, ${preempted} preempted, ${penalized} with a frequency penalty, ${judged} answers read again`
  })
})
