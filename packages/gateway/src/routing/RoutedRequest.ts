import type { OrgId } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import { Effect } from "effect"
import { abortRefusal } from "../abortRefusal.ts"
import { routingMetrics, type WaitOutcome } from "../observability/RoutingMetrics.ts"
import type { RequestAbort } from "../RequestAbort.ts"
import { modelNotFound, modelOverloaded, modelStarting, noCapacity, type Refusal } from "../refusals.ts"
import type { EngineState, Pulse } from "./EngineState.ts"
import type { ModelPool, Waiter } from "./ModelPool.ts"
import { prefixOf } from "./prefixOf.ts"
import type { RoutingSettings } from "./RoutingSettings.ts"
import { hashOf } from "./rendezvous.ts"
import { overdueStart, secondsUntilNextStart, secondsUntilStarted } from "./secondsUntilStarted.ts"

/** A request that looks for an engine. */
export interface Asked {
  readonly orgId: OrgId
  /** Its parsed body: what it shares with others decides whose cache may know it. */
  readonly members: Readonly<Record<string, unknown>>
  readonly streamed: boolean
}

export interface WaitOptions {
  /** Milliseconds that the caller waits as it says; null where it says nothing. */
  readonly patience: number | null
  /** Tells when there is nobody to answer any more. */
  readonly requestAbort: RequestAbort
}

/** What a passage needs of the gateway's routing. */
export interface RoutingDependencies {
  readonly settings: RoutingSettings
  readonly poolOf: (route: Route) => ModelPool
  readonly known: (orgId: OrgId, model: string) => Route | undefined
  readonly now: () => number
}

/**
 * A request's way to an engine: it enters at once or waits for its turn, may be sent on to one other engine, and leaves. Whoever makes one has to call `leave` in the end,
 * however it ends, as often as may be.
 */
export class RoutedRequest {
  readonly #dependencies: RoutingDependencies
  readonly #orgId: OrgId
  readonly #streamed: boolean
  /** Let go of when it has entered, or waits. */
  #members: Asked["members"] | null
  #route: Route
  #pool: ModelPool | null = null
  #engine: EngineState | null = null
  /** Whether the same engine was asked once more. */
  #askedAgain = false
  /** Whether it went to another engine. */
  #sentOn = false
  #left = false

  constructor(dependencies: RoutingDependencies, route: Route, asked: Asked) {
    this.#dependencies = dependencies
    this.#route = route
    this.#orgId = asked.orgId
    this.#streamed = asked.streamed
    this.#members = asked.members
  }

  /** Where the request goes: of the moment at which it entered, which may be another revision than that at which it came. */
  get route(): Route {
    return this.#route
  }

  /** The engine's address; empty before the request has one. */
  get url(): string {
    return this.#engine?.endpoint.url ?? ""
  }

  /** To be told of each sign of life of the engine. */
  get pulse(): Pulse {
    return this.#engine?.pulse ?? { at: 0 }
  }

  /** An answer of this request that is not streamed was written in so many milliseconds, with so many tokens in each choice. */
  observePace(tokens: number, millis: number) {
    this.#pool?.decodePace.observe(tokens, millis)
  }

  /** Tokens that the model's engines write of one choice in so many milliseconds; 0 before the request has an engine. */
  estimateTokens(millis: number): number {
    return this.#pool?.decodePace.estimate(millis) ?? 0
  }

  #key = (): number => {
    return hashOf(`${this.#orgId}\n${this.#route.modelId}\n${prefixOf(this.#members ?? {})}`)
  }

  /** Takes the engine, unless the model has gone meanwhile, or the request. */
  #enter(pool: ModelPool, engine: EngineState): boolean {
    this.#pool = pool
    this.#engine = engine
    this.#members = null
    const route = this.#dependencies.known(this.#orgId, this.#route.model)
    if (this.#left || route === undefined || route.modelId !== this.#route.modelId) {
      this.#drop()
      return false
    }
    this.#route = route
    return true
  }

  #drop() {
    if (this.#pool !== null && this.#engine !== null) this.#pool.leave(this.#engine, this.#streamed, this.#orgId)
    this.#engine = null
  }

  /** Whether there was an engine with room, which the request has now. */
  enter(): boolean {
    const pool = this.#dependencies.poolOf(this.#route)
    const engine = pool.take(this.#key, this.#streamed, this.#orgId)
    return engine !== undefined && this.#enter(pool, engine)
  }

  /** Waits for an engine, in turn with others and no longer than the caller. Fails where there is none in time, or too many wait. */
  wait({ requestAbort, patience }: WaitOptions): Effect.Effect<void, Refusal> {
    return Effect.callback((resume) => {
      const { now, poolOf, settings } = this.#dependencies
      const startedAt = now()
      const pool = poolOf(this.#route)
      const cold = pool.engines.length === 0
      const refusal = () => (pool.engines.length > 0 ? modelOverloaded : pool.placed === false ? noCapacity : this.#starting(pool))
      if (cold) pool.coldSince ??= startedAt
      const limit = Math.min(cold ? settings.coldWait : settings.queueWait, patience ?? Number.POSITIVE_INFINITY)
      // Nobody is held in vain.
      if (cold && (pool.failing?.nextStart ?? 0) > startedAt + limit) return resume(Effect.fail(refusal()))
      if (!pool.mayWait(this.#orgId, cold ? settings.coldWaiting : pool.waitingLimit)) return resume(Effect.fail(refusal()))
      const settle = (end: Effect.Effect<void, Refusal>, outcome: WaitOutcome) => {
        routingMetrics.waited(this.#route.model, cold ? "start" : "room", outcome, (now() - startedAt) / 1_000)
        clearTimeout(timer)
        requestAbort.removeEventListener("abort", onAbort)
        pool.queue.remove(this.#orgId, waiter)
        resume(end)
      }
      const onAbort = () => settle(Effect.fail(abortRefusal(requestAbort)), requestAbort.reason === "gone" ? "left" : "stopped")
      const gone = () => settle(Effect.fail(modelNotFound(this.#route.model)), "gone")
      const waiter: Waiter = {
        orgId: this.#orgId,
        key: this.#key(),
        streamed: this.#streamed,
        give: (engine) => (this.#enter(pool, engine) ? settle(Effect.void, "served") : gone()),
        gone
      }
      this.#members = null
      const timer = setTimeout(() => settle(Effect.fail(refusal()), "refused"), limit)
      if (requestAbort.aborted) return onAbort()
      requestAbort.addEventListener("abort", onAbort)
      pool.queue.add(this.#orgId, waiter)
      pool.dispatch()
      return Effect.sync(onAbort)
    })
  }

  #starting({ coldSince, failing, lastStart, route: { startSeconds } }: ModelPool): Refusal {
    if (failing !== null) {
      const left = failing.nextStart === null ? null : Math.max(0, failing.nextStart - this.#dependencies.now())
      const doubt = { ends: failing.ends, next: left === null ? null : Math.ceil(left / 1_000) }
      return modelStarting(secondsUntilNextStart({ lastStart, startSeconds }, left ?? 0), doubt)
    }
    const starting = { lastStart, startSeconds, passed: coldSince === null ? 0 : this.#dependencies.now() - coldSince }
    const usual = overdueStart(starting)
    return modelStarting(secondsUntilStarted(starting), usual === null ? undefined : { waited: Math.floor(starting.passed / 1_000), usual })
  }

  /**
   * Sends a request once more that did not get through to the engine that it has. `full`: that had no room; `lost`: the connection failed; both go to another engine. `stale`: a
   * kept connection was closed at once, as an idle one is, but also where the request itself ended the engine: it goes to the same, once, by which one that has ended shows, and
   * no other gets it for nothing. False where it was sent on before, there is no other, or too many requests for the model are.
   */
  retry(why: "full" | "lost" | "stale"): boolean {
    const pool = this.#pool
    const engine = this.#engine
    if (pool === null || engine === null) return false
    if (why === "stale" && !this.#askedAgain) {
      this.#askedAgain = true
      routingMetrics.retried(this.#route.model, why)
      return true
    }
    if (why === "full") engine.turnAway(this.#dependencies.now())
    else pool.fail(engine)
    if (this.#sentOn) return false
    const next = pool.takeOther([engine], this.#streamed, this.#orgId)
    if (next === undefined) return false
    if (!pool.budget.spend()) {
      pool.leave(next, this.#streamed, this.#orgId)
      return false
    }
    routingMetrics.retried(this.#route.model, why === "full" ? why : "lost")
    this.#sentOn = true
    pool.leave(engine, this.#streamed, this.#orgId)
    this.#engine = next
    return true
  }

  /** The engine answers well. */
  answered() {
    this.#engine?.answered()
  }

  /** The engine failed before it said anything, or a whole answer of it broke off, and no other is asked. */
  failed() {
    if (this.#pool !== null && this.#engine !== null) this.#pool.failAnswer(this.#engine, this.#orgId)
  }

  /** The request has ended. */
  leave() {
    this.#left = true
    this.#drop()
  }
}
