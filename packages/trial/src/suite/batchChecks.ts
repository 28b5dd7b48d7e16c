import { CompletionCounts, checkedTopTokens } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Unexpected } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { drawnCodes } from "./codes.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import { chatPath, goOn, questionOf, type SuiteSubject, salted } from "./SuiteSubject.ts"
import { drawnPrompts } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const decodeSeveral = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      choices: Schema.Tuple([Schema.Struct({ index: Schema.Int, text: Schema.String }), Schema.Struct({ index: Schema.Int, text: Schema.String })]),
      usage: CompletionCounts
    })
  )
)

/** Each of several prompts in one request has its own answer. */
export const promptsApart: TrialCheck = {
  name: "prompts_apart",
  class: "required",
  purpose: "Of several prompts in one request each has its own answer, and all are counted",
  limitSeconds: seconds(10),
  run: Effect.fnUntraced(function* (subject) {
    const fields = { max_tokens: 8, ignore_eos: true }
    const prompts = yield* drawnPrompts(subject, "prompts_apart", 2)
    const [first, second] = yield* Effect.forEach(prompts, (prompt) => goOn(subject, prompt, fields))
    const { status, text } = yield* subject.client.post(textPath, JSON.stringify({ ...salted(subject), prompt: prompts, ...fields }))
    const answered = Option.getOrNull(decodeSeveral(text))
    if (status !== 200 || answered === null) return yield* unexpected(`HTTP ${status}, and not two answers to two prompts`, { status })
    if (first === undefined || second === undefined || first.content === second.content) return "two equal answers to different prompts"
    const counted = first.usage.prompt_tokens + second.usage.prompt_tokens
    if (answered.usage.prompt_tokens !== counted) return yield* unexpected(`${answered.usage.prompt_tokens} prompt tokens for two prompts of ${counted}`)
    const [one, other] = answered.choices.toSorted((a, b) => a.index - b.index)
    // Other requests in the batch may turn a near tie, but never into the answer of the other prompt.
    if (one?.text === second.content || other?.text === first.content) return yield* unexpected("one of two prompts has the other's answer")
    return `two answers, ${counted} prompt tokens`
  })
}

/**
 * Whether the first differing tokens are each among the likeliest tokens of the other answer: a near tie, which other
 * requests in the batch can turn.
 */
export const nearTie = (one: Reading, other: Reading): boolean => {
  const [first, second] = [one.tokenChoices ?? [], other.tokenChoices ?? []]
  const at = first.findIndex(({ token }, index) => token !== second[index]?.token)
  const [a, b] = [first[at], second[at]]
  return a !== undefined && b !== undefined && a.top.includes(b.token) && b.top.includes(a.token)
}

const textOf = ({ content, reasoning }: Reading): string => `${reasoning} ${content}`

/** An answer in a batch next to the answer to the same request alone. */
interface BatchAnswer {
  readonly code: string
  readonly alone: Reading
  readonly answer: Reading
}

/**
 * How an answer in a batch differs from the one alone. After a near tie the wording may change and the code may be cut.
 * Such answers are different.
 */
const difference = ({ alone, answer, code }: BatchAnswer): "same" | "tie" | "lost" | "different" => {
  if (alone.content === answer.content && alone.reasoning === answer.reasoning) return "same"
  const isGone = textOf(alone).includes(code) && !textOf(answer).includes(code)
  if (nearTie(alone, answer)) return isGone ? "different" : "tie"
  return isGone ? "lost" : "different"
}

/** Asks for each code alone, and then twice for all codes at the same time. */
const askInBatches = Effect.fnUntraced(function* (subject: SuiteSubject, codes: ReadonlyArray<string>) {
  const ask = (code: string) => {
    const [path, body] = questionOf(subject, `Repeat this code: ${code}`, { max_tokens: 24 })
    return readAnswer(subject.client, path, {
      ...body,
      ...(path === chatPath ? { logprobs: true, top_logprobs: checkedTopTokens } : { logprobs: checkedTopTokens })
    })
  }
  const single = yield* Effect.forEach(codes, (code) => Effect.map(ask(code), (alone) => ({ code, alone })))
  const batch = Effect.forEach(single, (one) => Effect.map(ask(one.code), (answer): BatchAnswer => ({ ...one, answer })), { concurrency: "unbounded" })
  return [...(yield* batch), ...(yield* batch)]
})

/**
 * The answer to a request does not depend on concurrent requests. A second run judges the share over all answers of
 * both runs.
 */
export const batchEqualsAlone = (): TrialCheck => {
  const sum = { same: 0, ties: 0, all: 0 }
  return {
    name: "batch_equals_alone",
    class: "required",
    purpose: "Answers in a batch equal those alone, and contain no text of another request",
    limitSeconds: seconds(60),
    run: Effect.fnUntraced(function* (subject) {
      const count = Math.max(2, Math.min(extentOf(subject.parameters).batch, subject.slots))
      const codes = drawnCodes(subject.seed, "batch_equals_alone", count)
      const answers = yield* askInBatches(subject, codes)
      const all = answers.length
      const leaks = answers.filter(({ answer, code }) => codes.some((other) => other !== code && textOf(answer).includes(other))).length
      if (leaks > 0) return yield* unexpected(`${leaks} of ${all} concurrent answers held another request's code`, { code: "cross_request_leak" })
      const differences = answers.map(difference)
      const countOf = (kind: ReturnType<typeof difference>) => differences.filter((each) => each === kind).length
      const lost = countOf("lost")
      if (lost > 0) return yield* unexpected(`${lost} of ${all} answers lack their own code when other requests run at the same time`)
      sum.same += countOf("same")
      sum.ties += countOf("tie")
      sum.all += all
      const figures = `${sum.same} of ${sum.all} the same as alone, ${sum.ties} near ties`
      const isEnough = subject.batchInvariant ? sum.same >= sum.all : sum.same + sum.ties >= Math.ceil(thresholds.batchSame * sum.all)
      return isEnough ? figures : yield* new Unexpected({ detail: figures, open: true })
    })
  }
}
