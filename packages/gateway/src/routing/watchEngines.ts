import type { EngineWire, ModelId } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { makeOutageLog, type PlacedEngine, type Route } from "@seatrial/store"
import { Clock, Effect, Schedule, type Scope } from "effect"
import type { EngineClient } from "../EngineClient.ts"
import { readWhole } from "../readWhole.ts"
import type { EngineState } from "./EngineState.ts"
import type { ModelPool } from "./ModelPool.ts"
import type { RoutingSettings } from "./RoutingSettings.ts"
import { readEngineMetrics } from "./readEngineMetrics.ts"

export interface Watched {
  readonly pools: Map<ModelId, ModelPool>
  readonly settings: RoutingSettings
  readonly engine: EngineClient["Service"]
  readonly use: (route: Route, woken: boolean) => Effect.Effect<void>
  /** The engine of the model that has GPUs; null if there is none. */
  readonly placedEngine: (route: Route) => Effect.Effect<PlacedEngine | null>
  readonly now: () => number
}

/** Milliseconds after the last request for a model after which its pool is discarded and its engines are not polled. */
const idleAfter = 60_000
/** Milliseconds in which a requested engine gets its GPUs if any are free. */
const placedWithin = 20_000
/** Milliseconds after which the gateway checks why there is no engine. */
const checkPlacementAfter = 2_000
/** Milliseconds that an engine has to answer. */
const timeoutMillis = 2_000
/** Engines that are polled at once. */
const maxConcurrent = 16
/** Largest size of an engine's metrics, in bytes. */
const largest = 4 * 1024 * 1024

/** Gets a page of an engine; null if it did not answer with status 200. */
const makeGet = (engine: EngineClient["Service"]) => (url: string, path: "/metrics" | EngineWire["livenessPath"]) =>
  Effect.suspend(() => {
    const { signal } = new AbortController()
    return Effect.flatMap(engine.call({ url, path, method: "GET", body: null, requestId: "routing", timeout: timeoutMillis, signal }), (answer) =>
      Effect.map(readWhole(answer, largest, timeoutMillis, signal), (body) =>
        answer.statusCode === 200 && typeof body !== "string" ? body.toString("latin1") : null
      )
    )
  }).pipe(Effect.orElseSucceed(() => null))

const repeat = (what: Effect.Effect<void>, pause: number) =>
  what.pipe(Effect.catchCause(makeOutageLog("engines could not be polled")), Effect.repeat(Schedule.spaced(pause)), Effect.forkScoped)

/** Looks up whether a pool without ready engines has a placed or a failing engine. */
const makeCheckPlacement = ({ now, placedEngine }: Watched) =>
  Effect.fnUntraced(function* (pool: ModelPool, at: number) {
    if (pool.coldSince === null || at - pool.coldSince < checkPlacementAfter) return
    const placed = yield* placedEngine(pool.route)
    if (pool.coldSince === null || pool.engines.length > 0) return
    if (at - pool.coldSince >= placedWithin) pool.placed = placed !== null
    const failing = placed?.failing ?? null
    const { currentTimeMillisUnsafe } = yield* Clock.Clock
    pool.failing =
      failing === null ? null : { ends: failing.ends, nextStart: failing.nextStartAt === null ? null : now() + failing.nextStartAt - currentTimeMillisUnsafe() }
  })

/**
 * Polls engines of models with traffic. Other models need no polling: their first request uses only what the gateway
 * itself knows. Metrics are read at each interval and ignored when they are old. Health is checked only if the model
 * has another engine to move requests to. These are three loops, however much traffic there is.
 */
export const watchEngines = (watched: Watched): Effect.Effect<void, never, Scope.Scope> => {
  const { engine, now, pools, settings, use } = watched
  const get = makeGet(engine)

  const active = (): ReadonlyArray<ModelPool> => [...pools.values()].filter((pool) => pool.engines.length > 0)

  const checkPlacement = makeCheckPlacement(watched)

  const checkPools = Effect.suspend(() => {
    const at = now()
    const wanted: Array<ModelPool> = []
    for (const [id, pool] of pools) {
      if (pool.isIdleSince(at - idleAfter)) {
        pool.close()
        pools.delete(id)
        continue
      }
      for (const state of pool.engines) if (state.isHung(at, settings.hangMillis)) pool.eject(state)
      if (pool.queue.size === 0) continue
      pool.dispatch()
      // An engine without demand is stopped even during its start; waiting requests are demand.
      if (pool.engines.length === 0) wanted.push(pool)
    }
    return Effect.forEach(wanted, (pool) => Effect.andThen(use(pool.route, true), checkPlacement(pool, at)), { concurrency: maxConcurrent, discard: true })
  })

  const scrape = Effect.fnUntraced(function* (pool: ModelPool, state: EngineState) {
    const text = yield* get(state.endpoint.url, "/metrics")
    if (text === null) return
    state.recordMetrics(readEngineMetrics(text, engineWire(pool.route.runtime)), now())
    if (pool.queue.size > 0) pool.dispatch()
  })
  const metrics = Effect.suspend(() =>
    Effect.forEach(
      active().flatMap((pool) => pool.engines.map((state) => [pool, state] as const)),
      ([pool, state]) => scrape(pool, state),
      { concurrency: maxConcurrent, discard: true }
    )
  )

  const checkHealth = Effect.fnUntraced(function* (pool: ModelPool, state: EngineState) {
    const text = yield* get(state.endpoint.url, engineWire(pool.route.runtime).livenessPath)
    if (text === null) pool.fail(state)
  })
  const health = Effect.suspend(() =>
    Effect.forEach(
      active().flatMap((pool) => (pool.engines.length > 1 ? pool.engines.map((state) => [pool, state] as const) : [])),
      ([pool, state]) => checkHealth(pool, state),
      { concurrency: maxConcurrent, discard: true }
    )
  )

  return Effect.asVoid(
    Effect.all([
      repeat(checkPools, settings.scrapeIntervalMillis),
      repeat(metrics, settings.scrapeIntervalMillis),
      repeat(health, settings.healthIntervalMillis)
    ])
  )
}
