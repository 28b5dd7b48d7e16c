import { checkedTopTokens } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Unexpected } from "../engineAnswers.ts"
import { gauge } from "../gauge.ts"
import { monotonicMillis } from "../monotonicMillis.ts"
import { promptTokens } from "../promptTokens.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import { chatPath, continuation, goOn, promptOf, promptsOf, questionOf, salted } from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/**
 * The difference, in nats, between the log-probability of the first token of an answer and the one that another answer
 * to the same prompt reports for it; infinite if the other answer does not list it among the likeliest tokens. If two
 * tokens are nearly tied, it does not matter which one was chosen.
 */
const firstShift = (one: Reading, other: Reading): number => {
  const token = one.first?.token
  const elsewhere = token === undefined || token === other.first?.token ? (other.logprobs?.[0] ?? 0) : other.first?.top.get(token)
  return elsewhere === undefined ? Number.POSITIVE_INFINITY : Math.abs((one.logprobs?.[0] ?? 0) - elsewhere)
}

/** Values from the prefix cache equal computed values, and the cache is not shared between salts. */
export const cacheHitEqual: TrialCheck = {
  name: "cache_hit_equal",
  class: "required",
  purpose: "Answers are the same with and without the prefix cache, and another salt does not share it",
  limitSeconds: seconds(30),
  skipped: ({ offers }) => (offers.prefixCache ? null : "no prefix cache"),
  run: Effect.fnUntraced(function* (subject) {
    const { text } = yield* subject.client.get("/metrics")
    // Some architectures turn it off regardless of the flag.
    if (/^vllm:cache_config_info\{[^}]*enable_prefix_caching="False"/m.test(text)) return yield* new NotApplicable({ reason: "prefix cache off" })
    // Prompts shorter than one block are never cached, and some engines report cached tokens only if there are some.
    const block = Number(/^vllm:cache_config_info\{[^}]*block_size="(\d+)"/m.exec(text)?.[1] ?? 0)
    const prose = yield* promptOf(
      subject,
      likelihoodTexts
        .slice(0, 3)
        .map((each) => each.text)
        .join(" ")
    )
    const prompt = (length: number, seed: number) =>
      typeof prose === "string" || prose.length < length + seed ? promptTokens(subject.vocabSize, length, seed) : prose.slice(seed, seed + length)
    const lengths = extentOf(subject.parameters).cachedLengths.filter((length) => length + 24 <= subject.maxContext)
    const fields = { max_tokens: 8, ignore_eos: true, logprobs: checkedTopTokens }
    let hits = 0
    let changed = 0
    for (const [index, length] of lengths.entries()) {
      const ids = prompt(length, index * 7)
      const fresh = yield* goOn(subject, ids, fields)
      const again = yield* goOn(subject, ids, fields)
      if ((again.cached ?? 0) === 0 && length > block) return yield* unexpected(`${length} tokens: none reported as cached the second time`)
      hits += again.cached ?? 0
      const shift = firstShift(again, fresh)
      if (shift > thresholds.cachedFirst) return yield* unexpected(`${length} tokens: the first token is ${shift.toFixed(3)} nats off when cached`)
      if (fresh.content !== again.content) changed++
      const other = yield* goOn({ ...subject, salt: `${subject.salt}-other` }, ids, { ...fields, max_tokens: 1 })
      if ((other.cached ?? 0) > 0) return yield* unexpected(`${length} tokens: ${other.cached} cached under another salt`)
      if (subject.baseName === undefined) continue
      // With an adapter the same tokens have other keys and values.
      const base = yield* goOn({ ...subject, servedName: subject.baseName }, ids, { ...fields, max_tokens: 1 })
      if ((base.cached ?? 0) > 0) return yield* unexpected(`${length} tokens: ${base.cached} of the adapter's cached for the base`)
    }
    // A shared beginning with another end: only the beginning is cached.
    const [length = 64] = lengths
    if (changed > thresholds.cachedOthers || (changed > 0 && subject.batchInvariant))
      return yield* unexpected(`${changed} of ${lengths.length} answers change when cached`)
    const shared = prompt(length, 0)
    for (const [kept, added] of [
      [length - 8, 16],
      // Only the last token of a block differs.
      [length - 1, 2]
    ] as const) {
      const ended = [...shared.slice(0, kept), ...promptTokens(subject.vocabSize, added, 77)]
      const warm = yield* goOn(subject, ended, fields)
      const cold = yield* goOn({ ...subject, salt: `${subject.salt}-cold` }, ended, fields)
      const shift = firstShift(warm, cold)
      if (shift > thresholds.cachedFirst) return yield* unexpected(`another end: the first token is ${shift.toFixed(3)} nats off when cached`)
    }
    return `${lengths.length + 2} prompts, ${hits} tokens from the cache`
  })
}

/** A code that no two requests share. */
const codeOf = (index: number): string => {
  const letters = "BCDFGHJKLMNPQRSTVWXZ"
  const at = (place: number) => letters[(index * (place * 2 + 3) + place * 7 + index * index) % letters.length] ?? "B"
  return `${at(1)}${(index * 3 + 2) % 10}${at(2)}${at(3)}-${1_000 + ((index * 2_713 + 817) % 9_000)}`
}

/**
 * Whether the first differing tokens are each among the likeliest tokens of the other answer: a near tie, which other
 * requests in the batch can turn.
 */
const nearTie = (one: Reading, other: Reading): boolean => {
  const [first, second] = [one.tokenChoices ?? [], other.tokenChoices ?? []]
  const at = first.findIndex(({ token }, index) => token !== second[index]?.token)
  const [here, there] = [first[at], second[at]]
  return here !== undefined && there !== undefined && here.top.includes(there.token) && there.top.includes(here.token)
}

const decodeSeveral = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      choices: Schema.Tuple([Schema.Struct({ index: Schema.Int, text: Schema.String }), Schema.Struct({ index: Schema.Int, text: Schema.String })]),
      usage: Schema.Struct({ prompt_tokens: Schema.Int })
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
    const prompts = yield* promptsOf(subject, ["The old house had a garden, and in the garden there was", "one, two, three, one, two, three,"])
    const [first, second] = yield* Effect.forEach(prompts, (prompt) => goOn(subject, prompt, fields))
    const { status, text } = yield* subject.client.post(textPath, JSON.stringify({ ...salted(subject), prompt: prompts, ...fields }))
    const answered = Option.getOrNull(decodeSeveral(text))
    if (status !== 200 || answered === null) return yield* unexpected(`HTTP ${status}, and not two answers to two prompts`, { status })
    if (first === undefined || second === undefined || first.content === second.content) return "two answers, alike"
    const counted = first.usage.prompt_tokens + second.usage.prompt_tokens
    if (answered.usage.prompt_tokens !== counted) return yield* unexpected(`${answered.usage.prompt_tokens} prompt tokens for two prompts of ${counted}`)
    const [one, other] = answered.choices.toSorted((a, b) => a.index - b.index)
    // Other requests in the batch may turn a near tie, but never into the answer of the other prompt.
    if (one?.text === second.content || other?.text === first.content) return yield* unexpected("one of two prompts has the other's answer")
    return `two answers, ${counted} prompt tokens`
  })
}

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
      const codes = Array.from({ length: count }, (_, index) => codeOf(index))
      const ask = (code: string) => {
        const [path, body] = questionOf(subject, `Repeat this code: ${code}`, { max_tokens: 24 })
        return readAnswer(subject.client, path, {
          ...body,
          ...(path === chatPath ? { logprobs: true, top_logprobs: checkedTopTokens } : { logprobs: checkedTopTokens })
        })
      }
      const alone = yield* Effect.forEach(codes, ask)
      const rounds = yield* Effect.forEach([0, 1], () => Effect.forEach(codes, ask, { concurrency: "unbounded" }))
      let leaks = 0
      let lost = 0
      let same = 0
      let ties = 0
      for (const round of rounds) {
        for (const [index, answer] of round.entries()) {
          const single = alone[index]
          const code = codes[index] ?? ""
          const text = `${answer.reasoning} ${answer.content}`
          if (codes.some((other, at) => at !== index && text.includes(other))) leaks++
          if (single === undefined) continue
          const near = nearTie(single, answer)
          const gone = `${single.reasoning} ${single.content}`.includes(code) && !text.includes(code)
          // After a near tie the wording may change and the code may be cut. Such answers count among those that
          // differ.
          if (gone && !near) lost++
          if (single.content === answer.content && single.reasoning === answer.reasoning) same++
          else if (near && !gone) ties++
        }
      }
      const all = count * rounds.length
      if (leaks > 0) return yield* unexpected(`${leaks} of ${all} concurrent answers held another request's code`, { code: "cross_request_leak" })
      if (lost > 0) return yield* unexpected(`${lost} of ${all} answers lost their own code among others`)
      sum.same += same
      sum.ties += ties
      sum.all += all
      const needed = subject.batchInvariant ? sum.all : Math.ceil(thresholds.batchSame * sum.all)
      const figures = `${sum.same} of ${sum.all} the same as alone, ${sum.ties} near ties`
      if (sum.same + (subject.batchInvariant ? 0 : sum.ties) < needed) return yield* new Unexpected({ detail: figures, open: true })
      return figures
    })
  }
}

const preempted = (metrics: string) => gauge(metrics, "vllm:num_preemptions_total|sglang:num_retracted_requests_total")

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
    const tokens = subject.cacheTokens(before)
    if (tokens === null) return yield* new NotApplicable({ reason: "the engine does not report its KV cache" })
    const length = subject.maxContext - 64
    const count = Math.ceil((thresholds.pressure * tokens) / subject.maxContext)
    if (count > extentOf(subject.parameters).pressureRequests) return yield* new NotApplicable({ reason: `it would take ${count} requests` })
    if (count > subject.slots || length < 64) return yield* new NotApplicable({ reason: `${subject.slots} sequences cannot fill it` })
    const all = Array.from({ length: count }, (_, index) => index)
    const prompts = yield* promptsOf(
      subject,
      all.map((index) => `Repeat this code: ${codeOf(index)}\nCode: ${codeOf(index)}\nCode:`)
    )
    const ids = (index: number) => {
      const code = prompts[index]
      return [...promptTokens(subject.vocabSize, length - 32, 500 + index), ...(code === undefined || typeof code === "string" ? [] : code)]
    }
    const begunAt = yield* monotonicMillis
    const fields = { max_tokens: 24, ignore_eos: true, logprobs: 1, return_token_ids: true }
    const first = yield* goOn(subject, ids(0), fields)
    const each = (yield* monotonicMillis) - begunAt
    if (each * count > most * 500) return yield* new NotApplicable({ reason: `it would take ${Math.round((each * count) / 1000)} s` })
    const answers = yield* Effect.forEach(all, (index) => readAnswer(subject.client, "/v1/completions", continuation(subject, ids(index), fields)), {
      concurrency: "unbounded"
    })
    const leaks = answers.filter(({ content }, index) => all.some((at) => at !== index && content.includes(codeOf(at)))).length
    if (leaks > 0) return yield* unexpected(`${leaks} of ${count} answers held another request's code`, { code: "cross_request_leak" })
    const again = answers[0]
    if (again !== undefined && first.content !== again.content && first.content.includes(codeOf(0)) && !again.content.includes(codeOf(0))) {
      return yield* unexpected("an answer lost its code under pressure")
    }
    // The latest requests are preempted first: their recomputed tokens must have the same log-probabilities as when the
    // text is read as a prompt.
    let judged = 0
    for (const index of all.slice(-2)) {
      const { ids: written, logprobs } = answers[index] ?? first
      if (written === null || logprobs === null) continue
      const prompt = ids(index)
      const scored = yield* goOn(subject, [...prompt, ...written], { max_tokens: 1, ...subject.offers.scoring })
      const read = scored.promptLogprobs?.slice(prompt.length - 1) ?? []
      if (read.length !== logprobs.length) continue
      judged++
      const differences = logprobs.map((value, at) => Math.abs(value - (read[at] ?? Number.NaN)))
      const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length
      if (!(mean <= thresholds.decodeMean && Math.max(...differences) <= thresholds.decodeWorst)) {
        return yield* unexpected(`answer ${index + 1}: mean ${mean.toFixed(3)} nats off when it is read`)
      }
    }
    const short = answers.filter(({ usage }) => usage.completion_tokens !== fields.max_tokens).length
    if (short > 0) return yield* unexpected(`${short} of ${count} answers are short`)
    const [then, now] = [preempted(before), preempted((yield* subject.client.get("/metrics")).text)]
    return `${count} requests for ${tokens} tokens, ${then === null || now === null ? "" : `${now - then} preempted, `}${judged} answers read again`
  })
})
