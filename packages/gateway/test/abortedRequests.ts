import { assert } from "@effect/vitest"
import { costMicros, type Prices, type Usage } from "@seatrial/domain"
import type { RequestEnd } from "@seatrial/store"
import { Effect } from "effect"
import { type CachingEngine, type Computation, makeCachingEngine, type UsageReports } from "./cachingEngine.ts"
import { makeStage, type ReceivedAnswer, send, soon } from "./stage.ts"

const prices: Prices = {
  input_micros_per_mtok: "1000000",
  output_micros_per_mtok: "4000000",
  cache_read_micros_per_mtok: "100000",
  cache_write_micros_per_mtok: "1000000"
}

/** Random numbers from 0 up to 1, the same for each seed (mulberry32). */
const makeRandom = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const bodies = {
  "/v1/chat/completions": (text: string) => ({ messages: [{ role: "user", content: text }], max_completion_tokens: 8 }),
  "/v1/completions": (text: string) => ({ prompt: text, max_tokens: 8 }),
  "/v1/responses": (text: string) => ({ input: text, max_output_tokens: 8 }),
  "/v1/messages": (text: string) => ({ messages: [{ role: "user", content: text }], max_tokens: 8 })
} as const
const paths = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"] as const
const reports: ReadonlyArray<UsageReports> = ["running", "runningUncached", "last"]

const usageOf = ({ cached, output, prefilled }: Computation): Usage => ({
  input_tokens: prefilled - cached,
  output_tokens: output,
  cache_read_tokens: cached,
  cache_write_tokens: null
})

/** All prompt tokens of a record. */
const promptOf = ({ usage }: RequestEnd) => usage.input_tokens + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0)

export interface AbortedRequests {
  /** Requests that the engine began. */
  readonly begun: number
  /** Records that count fewer prompt tokens than the engine had computed. */
  readonly free: ReadonlyArray<string>
  /** Records that cost less than a caller that stays pays for the computed part of the prompt. */
  readonly cheap: ReadonlyArray<string>
  /** Cost of the records divided by the cost of the same work for callers that stay. */
  readonly ratio: number
}

/**
 * Runs `count` callers one after the other on all paths. Most disconnect at a random moment, some stay. Every second
 * prompt repeats an earlier one.
 */
export const runAbortedRequests = Effect.fnUntraced(function* (count: number, seed: number) {
  const random = makeRandom(seed)
  const pick = <A>(list: ReadonlyArray<A>): A | undefined => list[Math.floor(random() * list.length)]
  const engine: CachingEngine = yield* makeCachingEngine
  // The sequential callers send faster than the rate limit of one key allows.
  const { address, world } = yield* makeStage([engine.url], { GATEWAY_REQUESTS_PER_KEY: 100_000, GATEWAY_REQUESTS_PER_ORG: 100_000 })
  world.route = { ...world.route, prices }
  const prompts: Array<string> = []
  let left = 0
  while (left < count) {
    const text =
      random() < 0.5 && prompts.length > 0
        ? (pick(prompts) ?? "")
        : Array.from({ length: 10 + Math.floor(random() * 150) }, () => `w${Math.floor(random() * 100_000)}`).join(" ")
    prompts.push(text)
    engine.usage = pick(reports) ?? "last"
    const path = pick(paths) ?? "/v1/completions"
    const body = { model: "acme/tiny", ...bodies[path](text), stream: random() < 0.6 }
    const before = { calls: engine.engine.calls.length, records: world.recorded.length }
    const received: ReceivedAnswer = yield* send(address, { path, body })
    if (random() < 0.9) yield* soon(() => engine.engine.calls.length > before.calls || world.recorded.length > before.records)
    for (let turns = Math.floor(random() * 40); turns > 0 && received.ended === undefined; turns--) yield* turn
    if (received.ended === undefined) left++
    received.request.destroy()
    // If the gateway never read this request, the next one proves that nothing more arrives.
    yield* soon(() => world.recorded.slice(before.records).some(({ _tag }) => _tag !== "Begin") || engine.engine.calls.length === before.calls)
  }
  yield* soon(() => world.recorded.filter(({ _tag }) => _tag === "Begin").length === world.recorded.filter(({ _tag }) => _tag !== "Begin").length)
  const free: Array<string> = []
  const cheap: Array<string> = []
  let paid = 0
  let honest = 0
  for (const entry of world.recorded) {
    if (entry._tag !== "End") continue
    const computation = engine.computations.get(entry.row.id)
    if (computation === undefined) continue
    const cost = costMicros(entry.row.usage, prices)
    const due = costMicros(usageOf(computation), prices)
    const shown = JSON.stringify({ ...computation, usage: entry.row.usage, endpoint: entry.row.endpoint, streamed: entry.row.streamed, note: entry.row.note })
    if (promptOf(entry.row) < computation.prefilled) free.push(shown)
    if (cost < costMicros({ ...usageOf(computation), output_tokens: 0 }, prices)) cheap.push(shown)
    if (entry.row.statusCode !== 499) continue
    paid += Number(cost)
    honest += Number(due)
  }
  const result: AbortedRequests = { begun: engine.computations.size, free, cheap, ratio: paid / honest }
  return result
})

/** Every prefill is charged, at least as much as for a caller that stays. */
export const holdsFor = (departures: AbortedRequests, count: number) => {
  assert.isAbove(departures.begun, count / 2, "requests that an engine began")
  assert.deepStrictEqual(departures.free, [])
  assert.deepStrictEqual(departures.cheap, [])
  // The engine computes a few more tokens before it stops. If it reports cached tokens only at the end, the whole
  // prompt is charged.
  assert.isAbove(departures.ratio, 0.9)
  assert.isBelow(departures.ratio, 2)
}
