import { assert, describe, it } from "@effect/vitest"
import { engineWire } from "@seatrial/engines"
import type { SentinelRow } from "@seatrial/store"
import { probedLikelihood } from "@seatrial/trial"
import { Effect, Predicate } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { alarmLevel, noEvidence } from "../../src/sentinel/evidence.ts"
import { watchEngine } from "../../src/sentinel/watchEngine.ts"
import { revision, run } from "../observations.ts"

const tokens = 60
const verified = probedLikelihood(Array.from({ length: 8 }, () => Array.from({ length: tokens }, () => -1))) ?? []

/** An engine that answers probes. `nats`: how far it is from its trial. */
const makeEngine = () => {
  const engine = { nats: 0, running: 0, waiting: 0, seconds: 0, status: 200, reads: 0, prompts: [] as string[], salts: new Set<unknown>() }
  const answer = () =>
    Response.json({
      choices: [{ text: "a", finish_reason: "length" }],
      usage: { prompt_tokens: tokens + 1, completion_tokens: 1, total_tokens: tokens + 2 },
      prompt_logprobs: [null, ...Array.from({ length: tokens }, () => ({ 1: { logprob: -1 - engine.nats } }))]
    })
  const client = HttpClient.make((request) =>
    Effect.gen(function* () {
      if (request.url.endsWith("/metrics")) {
        engine.reads++
        return HttpClientResponse.fromWeb(request, new Response(`vllm:num_requests_running ${engine.running}\nvllm:num_requests_waiting ${engine.waiting}\n`))
      }
      const body: unknown = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : null
      if (Predicate.isObject(body)) {
        engine.prompts.push(String(body.prompt))
        engine.salts.add(body.cache_salt)
      }
      yield* Effect.sleep(engine.seconds * 1_000)
      return HttpClientResponse.fromWeb(request, engine.status === 200 ? answer() : new Response("", { status: engine.status }))
    })
  )
  return { engine, client }
}

/** Watches the engine while `use` runs. */
const watching = <A, E>(
  use: (world: ReturnType<typeof makeEngine>["engine"], rows: ReadonlyArray<SentinelRow>, alarms: ReadonlyArray<SentinelRow>) => Effect.Effect<A, E>,
  slots: number | null = 4
) =>
  Effect.gen(function* () {
    const { client, engine } = makeEngine()
    const [rows, alarms] = [[] as SentinelRow[], [] as SentinelRow[]]
    const target = {
      pod: "p",
      podUid: "u",
      restarts: 0,
      node: null,
      url: "http://engine",
      revisionId: revision.id,
      slots,
      servedName: "m",
      offers: { scoring: { prompt_logprobs: 0 }, prefixCache: true, seeds: true },
      metrics: engineWire("vllm").trialMetrics,
      maxContext: 4_096
    }
    yield* Effect.forkScoped(
      watchEngine(
        {
          run,
          target,
          verified,
          intervalMillis: 60_000,
          share: 0.005,
          level: alarmLevel(1e-6, 60_000),
          limited: (probe) => probe,
          onProbe: (row) => Effect.sync(() => void rows.push(row)),
          onAttempt: () => Effect.void,
          onAlarm: (row) => Effect.sync(() => void alarms.push(row))
        },
        { ...noEvidence(0), probedAt: 0, alarmedAt: null }
      ).pipe(Effect.provideService(HttpClient.HttpClient, client))
    )
    return yield* use(engine, rows, alarms)
  }).pipe(Effect.scoped)

describe("a serving engine", () => {
  it.effect("is probed once a minute, with another text and salt each time, and its state tells when it was last good", () =>
    watching((engine, rows, alarms) =>
      Effect.gen(function* () {
        yield* TestClock.adjust("10 minutes")
        assert.isAtLeast(rows.length, 9)
        assert.isAtMost(rows.length, 10)
        assert.strictEqual(engine.salts.size, rows.length)
        assert.strictEqual(new Set(engine.prompts).size, 5)
        assert.isEmpty(alarms)
        assert.deepStrictEqual([rows.at(-1)?.goodAt, rows.at(-1)?.probes], [rows.at(-1)?.probedAt, rows.length])
      })
    )
  )

  it.effect("raises an alarm once if its answers change, sooner than by one probe a minute", () =>
    watching((engine, rows, alarms) =>
      Effect.gen(function* () {
        yield* TestClock.adjust("10 minutes")
        // The text of the next probe was good five probes earlier.
        const good = rows.at(-5)
        engine.nats = 0.7
        // One minute until the first probe, and then one probe every five seconds.
        yield* TestClock.adjust("165 seconds")
        assert.strictEqual(alarms.length, 1)
        assert.deepStrictEqual(
          [(alarms[0]?.probes ?? 0) - (alarms[0]?.goodProbes ?? 0), alarms[0]?.goodProbes, alarms[0]?.goodAt],
          [25, good?.probes, good?.probedAt]
        )
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(alarms.length, 1)
        assert.strictEqual(rows.at(-1)?.alarmedAt, alarms[0]?.probedAt)
      })
    )
  )

  it.effect("raises an alarm if it answers probes with an internal error, but not if it is unavailable", () =>
    watching((engine, rows, alarms) =>
      Effect.gen(function* () {
        engine.status = 503
        yield* TestClock.adjust("30 minutes")
        assert.deepStrictEqual([rows.length, alarms.length], [0, 0])
        engine.status = 500
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(alarms.length, 1)
      })
    )
  )

  it.effect("gets no probe while a request waits in its queue", () =>
    watching((engine, rows) =>
      Effect.gen(function* () {
        Object.assign(engine, { running: 1, waiting: 1 })
        yield* TestClock.adjust("30 minutes")
        assert.isEmpty(rows)
        assert.isEmpty(engine.prompts)
        assert.isAtLeast(engine.reads, 29)
      })
    )
  )

  it.effect("gets a probe among requests only if a slot stays free for the next one, or if it has two slots", () =>
    Effect.gen(function* () {
      for (const { most, slots } of [
        { slots: 1, most: 0 },
        { slots: 2, most: 1 },
        { slots: 3, most: 1 },
        { slots: 4, most: 2 },
        { slots: 256, most: 254 }
      ]) {
        const isProbed = (running: number) =>
          watching((engine) => {
            engine.running = running
            return Effect.map(TestClock.adjust("15 minutes"), () => engine.prompts.length > 0)
          }, slots)
        assert.deepStrictEqual([yield* isProbed(most), yield* isProbed(most + 1)], [true, false], `${slots} slots`)
      }
      const hasProbe = watching((engine) => {
        engine.running = 1_000
        return Effect.map(TestClock.adjust("15 minutes"), () => engine.prompts.length > 0)
      }, null)
      assert.isTrue(yield* hasProbe)
    })
  )

  it.effect("gets a probe every ten minutes while it is never idle, and counts as good an hour earlier", () =>
    watching((engine, rows) =>
      Effect.gen(function* () {
        engine.running = 2
        yield* TestClock.adjust("9 minutes")
        assert.isEmpty(engine.prompts)
        yield* TestClock.adjust("111 minutes")
        assert.isAtLeast(rows.length, 10)
        assert.isAtMost(rows.length, 12)
        const last = rows.at(-1)
        assert.strictEqual((last?.probedAt ?? 0) - (last?.goodAt ?? 0), 3_600_000)
        // Idle again, it counts as good at the probe.
        engine.running = 0
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(rows.at(-1)?.goodAt, rows.at(-1)?.probedAt)
        engine.running = 1
        const { goodAt = 0 } = rows.at(-1) ?? {}
        yield* TestClock.adjust("15 minutes")
        assert.isTrue(rows.every((row, index) => index === 0 || row.goodAt >= (rows[index - 1]?.goodAt ?? 0)))
        assert.strictEqual(rows.at(-1)?.goodAt, goodAt)
      })
    )
  )

  it.effect("raises an alarm although it is never idle, by a probe a minute after the first difference", () =>
    watching((engine, rows, alarms) =>
      Effect.gen(function* () {
        engine.running = 1
        engine.nats = 0.7
        yield* TestClock.adjust("35 minutes")
        assert.deepStrictEqual([rows.length > 20, alarms.length], [true, 1])
        assert.isAtMost(engine.reads, 13 * 35)
      })
    )
  )

  it.effect("computes probes for at most 0.5% of its time, and a probe that takes too long is aborted", () =>
    watching((engine, rows) =>
      Effect.gen(function* () {
        engine.seconds = 2
        yield* TestClock.adjust("100 minutes")
        assert.isAtLeast(engine.prompts.length, 14)
        assert.isAtMost(engine.prompts.length, 15)
        assert.strictEqual(rows.length, engine.prompts.length)
        const before = rows.length
        engine.seconds = 60
        yield* TestClock.adjust("100 minutes")
        assert.strictEqual(rows.length, before)
        assert.isAtMost(engine.prompts.length - before, 7)
      })
    )
  )

  it.effect("counts as wrong if its log-probabilities are no numbers", () =>
    watching((engine, _, alarms) =>
      Effect.gen(function* () {
        engine.nats = Number.NaN
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(alarms.length, 1)
      })
    )
  )
})
