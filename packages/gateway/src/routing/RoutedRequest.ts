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

/** A request that needs an engine. */
export interface RoutingRequest {
  readonly orgId: OrgId
  /** Its parsed body. The prefix that it shares with other requests decides which engine is preferred. */
  readonly members: Readonly<Record<string, unknown>>
  readonly streamed: boolean
  /** The number of answers that the engine generates at once: choices for each prompt. Each takes a slot. */
  readonly sequences: number
}

export interface WaitOptions {
  /** Milliseconds that the caller waits according to its headers; null if they do not say. */
  readonly patience: number | null
  /** Aborted when the request needs no answer any more. */
  readonly requestAbort: RequestAbort
}

/** What a request needs from the gateway's routing. */
export interface RoutingDependencies {
  readonly settings: RoutingSettings
  readonly poolOf: (route: Route) => ModelPool
  readonly known: (orgId: OrgId, model: string) => Route | undefined
  readonly now: () => number
}

/**
 * Routes one request: it gets an engine at once or waits in turn, may move to one other engine, and leaves. The owner
 * must call `leave` at the end of every request; more calls have no effect.
 */
export class RoutedRequest {
  readonly #dependencies: RoutingDependencies
  readonly #orgId: OrgId
  readonly #streamed: boolean
  readonly #sequences: number
  /** Released when the request has an engine, or waits. */
  #members: RoutingRequest["members"] | null
  #route: Route
  #pool: ModelPool | null = null
  #engine: EngineState | null = null
  /** Whether the request was sent to the same engine twice. */
  #isRepeated = false
  /** Whether the request moved to a second engine. */
  #isMoved = false
  #hasLeft = false

  constructor(dependencies: RoutingDependencies, route: Route, request: RoutingRequest) {
    this.#dependencies = dependencies
    this.#route = route
    this.#orgId = request.orgId
    this.#streamed = request.streamed
    this.#sequences = request.sequences
    this.#members = request.members
  }

  /**
   * The route at the time when the request got its engine, with the revision of that engine. It may differ from the one
   * that was current when the request arrived.
   */
  get route(): Route {
    return this.#route
  }

  /** The engine's address; empty before the request has an engine. */
  get url(): string {
    return this.#engine?.endpoint.url ?? ""
  }

  /** The UID of the engine's pod; null if it is not known, or before the request has an engine. */
  get engine(): string | null {
    return this.#engine?.endpoint.engine ?? null
  }

  /** Update it on each sign of life of the engine. */
  get pulse(): Pulse {
    return this.#engine?.pulse ?? { at: 0 }
  }

  /** Records that an answer which was not streamed took `millis` milliseconds for `tokens` tokens in each choice. */
  observePace(tokens: number, millis: number) {
    this.#pool?.decodePace.observe(tokens, millis)
  }

  /**
   * Tokens of one choice that the model's engines generate in `millis` milliseconds, in which they also read the
   * prompt; 0 before the request has an engine.
   */
  estimateTokens(millis: number, promptTokens: number): number {
    return this.#pool?.decodePace.estimate(millis, promptTokens) ?? 0
  }

  /** When the engine last computed tokens, of any request. Now, if the engine does not report that. */
  get workedUntil(): number {
    const now = this.#dependencies.now()
    return this.#engine?.workedUntil(now) ?? now
  }

  #key = (): number => {
    return hashOf(`${this.#orgId}\n${this.#route.modelId}\n${prefixOf(this.#members ?? {})}`)
  }

  /** Assigns the engine. Returns false if the model was deleted in the meantime, or if the request has left. */
  #enter(pool: ModelPool, engine: EngineState): boolean {
    this.#pool = pool
    this.#engine = engine
    this.#members = null
    const route = this.#dependencies.known(this.#orgId, this.#route.model)
    if (this.#hasLeft || route === undefined || route.modelId !== this.#route.modelId) {
      this.#drop()
      return false
    }
    const { retiring } = engine.endpoint
    this.#route = retiring === undefined ? route : { ...route, ...retiring }
    return true
  }

  #drop() {
    if (this.#pool !== null && this.#engine !== null) this.#pool.leave(this.#engine, this.#streamed, this.#orgId, this.#sequences)
    this.#engine = null
  }

  /** The most sequences that a request to the model may have. */
  get mostSequences(): number {
    const pool = this.#dependencies.poolOf(this.#route)
    pool.refresh()
    return pool.mostSequences
  }

  /** Takes free slots if there are enough, and returns whether it did. */
  enter(): boolean {
    const pool = this.#dependencies.poolOf(this.#route)
    const engine = pool.take(this.#key, this.#streamed, this.#orgId, this.#sequences)
    return engine !== undefined && this.#enter(pool, engine)
  }

  /**
   * Waits in turn for a slot, at most as long as the caller waits. Fails if there is none in time, or if too many
   * requests wait.
   */
  wait({ requestAbort, patience }: WaitOptions): Effect.Effect<void, Refusal> {
    return Effect.callback((resume) => {
      const { now, poolOf, settings } = this.#dependencies
      const startedAt = now()
      const pool = poolOf(this.#route)
      const cold = pool.engines.length === 0
      const refusal = () => (pool.engines.length > 0 ? modelOverloaded : pool.placed === false ? noCapacity : this.#starting(pool))
      if (cold) pool.coldSince ??= startedAt
      const limit = Math.min(cold ? settings.coldWaitMillis : settings.queueWaitMillis, patience ?? Number.POSITIVE_INFINITY)
      // The next start is too late for this request, so it fails now instead of at its time limit.
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
        sequences: this.#sequences,
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
   * Prepares a second attempt after the engine did not take the request, and returns whether there is one. `full` (the
   * engine had no room) and `lost` (the connection failed) move the request to another engine. `stale` (a kept
   * connection was closed at once) repeats it once on the same engine: usually the connection was idle, but if the
   * request itself crashed the engine, the repetition fails there and no other engine crashes. Returns false if the
   * request was moved before, if there is no other engine, or if the retry budget of the model is used up. Both
   * engines serve the same revision: the record of the request names it already.
   */
  retry(why: "full" | "lost" | "stale"): boolean {
    const pool = this.#pool
    const engine = this.#engine
    if (pool === null || engine === null) return false
    if (why === "stale" && !this.#isRepeated) {
      this.#isRepeated = true
      routingMetrics.retried(this.#route.model, why)
      return true
    }
    if (why === "full") engine.markFull(this.#dependencies.now())
    else pool.lose(engine, this.#orgId)
    if (this.#isMoved) return false
    const next = pool.takeOther(engine, this.#route.revisionId, this.#streamed, this.#orgId, this.#sequences)
    if (next === undefined) return false
    if (!pool.budget.spend()) {
      pool.leave(next, this.#streamed, this.#orgId, this.#sequences)
      return false
    }
    routingMetrics.retried(this.#route.model, why === "full" ? why : "lost")
    this.#isMoved = true
    pool.leave(engine, this.#streamed, this.#orgId, this.#sequences)
    this.#engine = next
    return true
  }

  /** The engine gave a good answer. */
  answered() {
    if (this.#engine !== null) this.#pool?.answered(this.#engine)
  }

  /** The engine failed before its first content, or a complete answer broke off, and the request is not repeated. */
  failed() {
    if (this.#pool !== null && this.#engine !== null) this.#pool.failAnswer(this.#engine, this.#orgId)
  }

  /** The request has ended. */
  leave() {
    this.#hasLeft = true
    this.#drop()
  }
}
