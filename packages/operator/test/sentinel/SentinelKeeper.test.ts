import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { type AlarmedEngine, type NewSuspicion, Runs, type SentinelRow, Sentinels } from "@seatrial/store"
import { suite } from "@seatrial/trial"
import { Clock, Effect, Layer, Option, Predicate, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import type { ProbeTarget } from "../../src/sentinel/probedEngines.ts"
import { makeSentinelKeeper } from "../../src/sentinel/SentinelKeeper.ts"
import { revision, run } from "../observations.ts"

const tokens = 30
const targetOf = (pod: string): ProbeTarget => ({
  pod,
  podUid: `uid-${pod}`,
  restarts: 0,
  node: "node-1",
  url: `http://${pod}`,
  revisionId: revision.id,
  slots: null,
  servedName: "m",
  offers: { scoring: {}, prefixCache: true, seeds: true },
  metrics: engineWire("vllm").trialMetrics,
  maxContext: 4_096
})
const followed = (pod: string) => ({ pod, uid: `uid-${pod}`, target: targetOf(pod) })

/** A keeper over engines that answer at once. `nats`: how far they are from the trial. */
const makeWorld = (seconds: number) => {
  const world = {
    nats: 0,
    probes: 0,
    /** The time of the last probe of each engine. */
    probedAt: new Map<string, number>(),
    saved: new Map<string, SentinelRow>(),
    batches: 0,
    models: [] as string[],
    running: 0,
    gone: [] as string[],
    raised: [] as NewSuspicion[],
    alarms: [] as AlarmedEngine[]
  }
  const client = HttpClient.make((request) =>
    Effect.gen(function* () {
      if (request.url.endsWith("/metrics")) return HttpClientResponse.fromWeb(request, new Response(`vllm:num_requests_running ${world.running}\n`))
      world.probes++
      world.probedAt.set(new URL(request.url).host, yield* Clock.currentTimeMillis)
      const body: unknown = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : null
      world.models.push(Predicate.isObject(body) ? String(body.model) : "")
      const answer = {
        choices: [{ text: "a" }],
        usage: { prompt_tokens: tokens + 1, completion_tokens: 1, total_tokens: tokens + 2 },
        prompt_logprobs: [null, ...Array.from({ length: tokens }, () => ({ 1: { logprob: -1 - world.nats } }))]
      }
      return HttpClientResponse.fromWeb(request, Response.json(answer))
    })
  )
  const likelihood = Array.from({ length: 8 }, () => Array.from({ length: tokens }, () => -1))
  const layer = Layer.mergeAll(
    Layer.mock(Runs)({ likelihood: () => Effect.succeed({ suiteVersion: suite.version, likelihood }) }),
    Layer.mock(Sentinels)({
      read: ({ podUid }) => Effect.sync(() => Option.fromUndefinedOr(world.saved.get(podUid))),
      save: (rows, gone) =>
        Effect.sync(() => {
          world.batches++
          for (const row of rows) world.saved.set(row.podUid, row)
          world.gone.push(...gone)
        }),
      raise: (suspicion) => Effect.sync(() => world.raised.push(suspicion))
    }),
    Layer.succeed(HttpClient.HttpClient, client)
  )
  const keeper = makeSentinelKeeper({ seconds, share: 0.5, alpha: 1e-6, onAlarm: (_, engine) => Effect.sync(() => void world.alarms.push(engine)) })
  return { world, layer, keeper }
}

/** The metric of the longest time without a probe, seconds. */
const shown = Effect.map(PrometheusMetrics.format(), (text) => Number(/^seatrial_operator_sentinel_unprobed_seconds (\d+)/m.exec(text)?.[1]))

describe("the probes of all engines", () => {
  it.effect("are at most 50 a second, and their states are written in batches", () => {
    const { keeper, layer, world } = makeWorld(1)
    return Effect.gen(function* () {
      const { follow } = yield* keeper
      yield* follow(
        run,
        Array.from({ length: 200 }, (_, number) => followed(`p-${number}`))
      )
      yield* TestClock.adjust("4 seconds")
      assert.isAtMost(world.probes, 200)
      assert.isAtLeast(world.probes, 120)
      yield* follow(run, [])
      const probes = world.probes
      yield* TestClock.adjust("31 seconds")
      assert.deepStrictEqual([world.probes, world.batches, world.gone.length], [probes, 1, 200])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("continue after a change of the leader, and end when the run is forgotten", () => {
    const { keeper, layer, world } = makeWorld(10)
    return Effect.gen(function* () {
      const leader = Effect.fnUntraced(function* (minutes: number) {
        const { follow, forget, remembers } = yield* keeper
        yield* follow(run, [followed("p")])
        yield* TestClock.adjust(minutes * 60_000)
        assert.isTrue(remembers(run.id))
        return { forget, remembers }
      })
      yield* Effect.scoped(leader(2))
      const first = world.saved.get("uid-p")?.probes ?? 0
      assert.isAbove(first, 6)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { forget, remembers } = yield* leader(2)
          assert.isAbove(world.saved.get("uid-p")?.probes ?? 0, first + 6)
          yield* forget(Schema.decodeSync(DeploymentId)(run.id))
          const { probes } = world
          yield* TestClock.adjust("2 minutes")
          assert.deepStrictEqual([world.probes, remembers(run.id), world.gone], [probes, false, ["uid-p"]])
        })
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("name the model as it is called now, after it was published or withdrawn", () => {
    const { keeper, layer, world } = makeWorld(10)
    return Effect.gen(function* () {
      const { follow } = yield* keeper
      yield* follow(run, [followed("p")])
      yield* TestClock.adjust("1 minute")
      const before = world.probes
      yield* follow(run, [{ ...followed("p"), target: { ...targetOf("p"), servedName: "acme/m" } }])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([world.models[0], world.models.at(-1), world.models.filter((name) => name === "m").length], ["m", "acme/m", before])
      yield* TestClock.adjust("31 seconds")
      // What earlier probes showed still counts.
      assert.isAbove(world.saved.get("uid-p")?.probes ?? 0, before)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("show how long an engine was without one", () => {
    const { keeper, layer, world } = makeWorld(10)
    return Effect.gen(function* () {
      const { follow } = yield* keeper
      yield* follow(run, [followed("p")])
      yield* TestClock.adjust("1 minute")
      assert.isAtMost(yield* shown, 10)
      // Requests wait in its queue, because it reports no number of them.
      world.running = 2
      yield* TestClock.adjust("10 minutes")
      const unprobed = yield* shown
      assert.isTrue(unprobed >= 590 && unprobed <= 610, String(unprobed))
      yield* follow(run, [])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* shown, 0)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("show the engine that was longest without one, also between two attempts", () => {
    const { keeper, layer, world } = makeWorld(3_600)
    return Effect.gen(function* () {
      const { follow } = yield* keeper
      yield* follow(run, [followed("p"), followed("q")])
      for (const minutes of [60, 7, 29, 41]) {
        yield* TestClock.adjust(minutes * 60_000)
        const now = yield* Clock.currentTimeMillis
        assert.strictEqual(world.probedAt.size, 2)
        assert.strictEqual(yield* shown, Math.floor((now - Math.min(...world.probedAt.values())) / 1_000))
      }
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("are recorded and reported once if they differ, with the node", () => {
    const { keeper, layer, world } = makeWorld(10)
    return Effect.gen(function* () {
      const { follow } = yield* keeper
      yield* follow(run, [followed("p")])
      yield* TestClock.adjust("1 minute")
      world.nats = 1
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual([world.raised.length, world.alarms.length, world.raised[0]?.node], [1, 1, "node-1"])
      assert.deepInclude(world.alarms[0], { pod: "p", podUid: "uid-p", restarts: 0, probes: 26 })
      // The same start of the engine is not followed again by another pass.
      yield* follow(run, [followed("p")])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(world.alarms.length, 1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})
