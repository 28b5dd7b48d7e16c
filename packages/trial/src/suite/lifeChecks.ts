import type { OutputFingerprint } from "@seatrial/domain"
import { monotonicMillis } from "@seatrial/domain"
import { Effect, Fiber } from "effect"
import { gauge } from "../gauge.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { digest, fingerprintFields } from "./fingerprints.ts"
import { put, questionOf, type SuiteSubject } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

/** The load of the engine. `generated`: tokens since its start, including aborted requests; null if not reported. */
interface EngineLoad {
  readonly running: number
  readonly cache: number
  readonly generated: number | null
}

const load = ({ client, metrics }: SuiteSubject) =>
  Effect.map(
    client.get("/metrics"),
    ({ text }): EngineLoad => ({
      running: gauge(text, metrics.requests) ?? 0,
      cache: gauge(text, metrics.cacheUse) ?? 0,
      generated: gauge(text, metrics.generatedTokens)
    })
  )

type Question = ReturnType<typeof questionOf>

/** Sends ten requests and leaves them: eight after their first token, two while the engine works on them. */
const abortTen = Effect.fnUntraced(function* (subject: SuiteSubject, [path, body]: Question, runningBefore: number) {
  yield* Effect.forEach(Array.from({ length: 8 }), () => subject.client.firstPiece(path, body), { concurrency: "unbounded", discard: true })
  const dropped = yield* Effect.forEach([0, 1], () => Effect.forkChild(subject.client.post(path, JSON.stringify(body))))
  const deadline = (yield* monotonicMillis) + thresholds.abortSeconds * 1_000
  const underWay = () => dropped.some((fibre) => fibre.pollUnsafe() === undefined)
  while (underWay() && (yield* load(subject)).running <= runningBefore && (yield* monotonicMillis) < deadline) yield* Effect.sleep("10 millis")
  yield* Effect.forEach(dropped, Fiber.interrupt, { discard: true })
})

/** Waits until the load is as before. Fails if the time for it is over. Succeeds with the last load. */
const untilIdle = Effect.fnUntraced(function* (subject: SuiteSubject, before: EngineLoad) {
  const deadline = (yield* monotonicMillis) + thresholds.abortSeconds * 1_000
  let now = yield* load(subject)
  while (now.running > before.running || now.cache > before.cache + thresholds.abortCacheUse) {
    if ((yield* monotonicMillis) >= deadline) {
      return yield* unexpected(
        `${now.running} requests still run after ${thresholds.abortSeconds} s, KV cache use ${now.cache.toFixed(3)}, was ${before.cache.toFixed(3)}`
      )
    }
    yield* Effect.sleep("50 millis")
    // Some engines update their gauges only with the next step.
    yield* put(subject, "Say yes.", { max_tokens: 1 })
    now = yield* load(subject)
  }
  return now
})

/** The first token must not come much later than before. Succeeds with its milliseconds. */
const firstPieceAsBefore = Effect.fnUntraced(function* (subject: SuiteSubject, [path, body]: Question, usual: number) {
  const limit = usual * thresholds.abortSlower + thresholds.abortSlowerMillis
  // A busy node delays a single request now and then; work for disconnected clients delays all.
  let next = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 3 && next > limit; attempt++) next = Math.min(next, yield* subject.client.firstPiece(path, body))
  return next > limit ? yield* unexpected(`first token after ${Math.round(next)} ms, ${Math.round(usual)} ms before`) : next
})

/** The engine stops working on requests whose client disconnected. */
export const abortFrees = (): TrialCheck => {
  // The state before the first attempt. The second attempt must not take what the first left running as the usual
  // state.
  let idle: EngineLoad | null = null
  return {
    name: "abort_frees",
    class: "required",
    purpose: "Aborted requests stop and free their memory, and the next request is not slower",
    limitSeconds: seconds(20),
    clockBound: true,
    run: Effect.fnUntraced(function* (subject) {
      const before = idle ?? (yield* load(subject))
      idle = before
      const long = { max_tokens: Math.max(1, Math.floor(subject.maxContext / 2)), ignore_eos: true }
      const words = yield* vocabularyWords(subject, "abort_frees", 2)
      const question = questionOf(subject, `Tell me a long story about ${words.join(" and ")}.`, long)
      const usual = yield* subject.client.firstPiece(...question)
      const { generated: from } = yield* load(subject)
      yield* abortTen(subject, question, before.running)
      const now = yield* untilIdle(subject, before)
      // A fast engine may finish all of them before the check reads the counters.
      const tokens = from === null || now.generated === null ? 0 : now.generated - from
      if (tokens > thresholds.abortTokens * 10 * long.max_tokens)
        return yield* unexpected(`10 aborted answers generated ${tokens} tokens (limit ${long.max_tokens} each)`)
      const next = yield* firstPieceAsBefore(subject, question, usual)
      return `10 aborted, first token ${Math.round(next)} ms, ${Math.round(usual)} ms before`
    })
  }
}

/** After all checks the engine still gives the same answer, and nothing keeps running. */
export const stillAlive = (fingerprints: () => ReadonlyArray<typeof OutputFingerprint.Type>): TrialCheck => ({
  name: "still_alive",
  class: "required",
  purpose: "After all checks the engine gives the same answer as before, and nothing keeps running",
  limitSeconds: seconds(10),
  run: Effect.fnUntraced(function* (subject) {
    const { usage } = yield* put(subject, "Say yes.", { max_tokens: 4, ignore_eos: true })
    if (usage.completion_tokens !== 4) return yield* unexpected(`${usage.completion_tokens} of 4 tokens`)
    const [first] = fingerprints()
    if (first !== undefined && digest(yield* put(subject, first.prompt, fingerprintFields(subject))) !== first.sha256) {
      return yield* unexpected("another answer than at the beginning")
    }
    let { running } = yield* load(subject)
    for (let reading = 0; running > 0 && reading < 3; reading++) {
      yield* Effect.sleep("200 millis")
      running = (yield* load(subject)).running
    }
    return running > 0 ? yield* unexpected(`${running} requests still run`) : "nothing runs"
  })
})
