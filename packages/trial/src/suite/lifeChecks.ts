import type { OutputFingerprint } from "@seatrial/domain"
import { Effect, Fiber } from "effect"
import { gauge } from "../gauge.ts"
import { monotonicMillis } from "../monotonicMillis.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { digest, fingerprintFields } from "./fingerprints.ts"
import { put, questionOf, type SuiteSubject } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

const running = (metrics: string) => gauge(metrics, "vllm:num_requests_running|vllm:num_requests_waiting|sglang:num_running_reqs|sglang:num_queue_reqs") ?? 0
const cacheUse = (metrics: string) => gauge(metrics, "vllm:kv_cache_usage_perc|sglang:token_usage") ?? 0

/** Tokens generated since the engine started, including aborted requests; null if the engine does not report them. */
const generated = (metrics: string) => gauge(metrics, 'vllm:generation_tokens_total|sglang:realtime_tokens_total\\{[^}]*mode="decode"[^}]*\\}')

const load = (subject: SuiteSubject) =>
  Effect.map(subject.client.get("/metrics"), ({ text }) => ({ running: running(text), cache: cacheUse(text), generated: generated(text) }))

/** The engine stops working on requests whose client disconnected. */
export const abortFrees = (): TrialCheck => {
  // The state before the first attempt. The second attempt must not take what the first left running as the usual
  // state.
  let idle: { readonly running: number; readonly cache: number } | null = null
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
      const [path, body] = questionOf(subject, "Tell me a long story.", long)
      const usual = yield* subject.client.firstPiece(path, body)
      const { generated: from } = yield* load(subject)
      yield* Effect.forEach(Array.from({ length: 8 }), () => subject.client.firstPiece(path, body), { concurrency: "unbounded", discard: true })
      const dropped = yield* Effect.forEach([0, 1], () => Effect.forkChild(subject.client.post(path, JSON.stringify(body))))
      const deadline = (yield* monotonicMillis) + thresholds.abortSeconds * 1_000
      const underWay = () => dropped.some((fibre) => fibre.pollUnsafe() === undefined)
      while (underWay() && (yield* load(subject)).running <= before.running && (yield* monotonicMillis) < deadline) yield* Effect.sleep("10 millis")
      yield* Effect.forEach(dropped, Fiber.interrupt, { discard: true })
      const until = (yield* monotonicMillis) + thresholds.abortSeconds * 1_000
      let now = yield* load(subject)
      while (now.running > before.running || now.cache > before.cache + thresholds.abortCacheUse) {
        if ((yield* monotonicMillis) >= until) {
          return yield* unexpected(
            `${now.running} requests run on after ${thresholds.abortSeconds} s, KV cache use ${now.cache.toFixed(3)}, was ${before.cache.toFixed(3)}`
          )
        }
        yield* Effect.sleep("50 millis")
        // Some engines update their gauges only with the next step.
        yield* put(subject, "Say yes.", { max_tokens: 1 })
        now = yield* load(subject)
      }
      // A fast engine may finish all of them before the check reads the counters.
      const tokens = from === null || now.generated === null ? 0 : now.generated - from
      if (tokens > thresholds.abortTokens * 10 * long.max_tokens) return yield* unexpected(`${tokens} tokens for 10 aborted answers of ${long.max_tokens}`)
      const limit = usual * thresholds.abortSlower + thresholds.abortSlowerMillis
      // A busy node delays a single request now and then; work for disconnected clients delays all.
      let next = Number.POSITIVE_INFINITY
      for (let attempt = 0; attempt < 3 && next > limit; attempt++) next = Math.min(next, yield* subject.client.firstPiece(path, body))
      return next > limit
        ? yield* unexpected(`first token after ${Math.round(next)} ms, ${Math.round(usual)} ms before`)
        : `10 aborted, first token ${Math.round(next)} ms, ${Math.round(usual)} ms before`
    })
  }
}

/** After all checks the engine still gives the same answer, and nothing keeps running. */
export const stillAlive = (kept: () => ReadonlyArray<typeof OutputFingerprint.Type>): TrialCheck => ({
  name: "still_alive",
  class: "required",
  purpose: "After all checks the engine gives the same answer as before, and nothing keeps running",
  limitSeconds: seconds(10),
  run: Effect.fnUntraced(function* (subject) {
    const { usage } = yield* put(subject, "Say yes.", { max_tokens: 4, ignore_eos: true })
    if (usage.completion_tokens !== 4) return yield* unexpected(`${usage.completion_tokens} of 4 tokens`)
    const [first] = kept()
    if (first !== undefined && digest(yield* put(subject, first.prompt, fingerprintFields(subject))) !== first.sha256) {
      return yield* unexpected("another answer than at the beginning")
    }
    let { running } = yield* load(subject)
    for (let look = 0; running > 0 && look < 3; look++) {
      yield* Effect.sleep("200 millis")
      running = (yield* load(subject)).running
    }
    return running > 0 ? yield* unexpected(`${running} requests run on`) : "nothing runs"
  })
})
