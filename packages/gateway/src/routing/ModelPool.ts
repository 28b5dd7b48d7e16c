import type { ModelId, OrgId } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import type { ObservedPool } from "../observability/RoutingMetrics.ts"
import { DecodePace } from "./DecodePace.ts"
import { EngineState } from "./EngineState.ts"
import { FairQueue } from "./FairQueue.ts"
import { mayTakePlace } from "./mayTakePlace.ts"
import { pickEngine } from "./pickEngine.ts"
import { RetryBudget } from "./RetryBudget.ts"

/** Requests that an engine may have beyond what it was seen to work on at once. */
const beyondMeasured = 4
/** So many times what a model's engines can have may wait for them. */
const waitingPerPlace = 4

/** A request that waits for an engine. */
export interface Waiter {
  readonly orgId: string
  readonly key: number | null
  readonly streamed: boolean
  /** It has the engine now. */
  readonly give: (engine: EngineState) => void
  /** The model is no more. */
  readonly gone: () => void
}

export interface PoolOptions {
  /** Requests at once for engines of which nothing was measured. */
  readonly unmeasured: number
  /** `performance.now()`. */
  readonly now: () => number
  /** Where requests for the model go now; undefined where there is no such model any more. */
  readonly current: (id: ModelId) => Route | undefined
}

/** The engines of a model, what each of them has, and who waits for one. Times are `performance.now()`. */
export class ModelPool {
  route: Route
  engines: ReadonlyArray<EngineState> = []
  readonly queue = new FairQueue<Waiter>()
  /** Of second attempts: engines of one model that fail leave those of others theirs. */
  readonly budget = new RetryBudget()
  readonly decodePace = new DecodePace()
  /** When a request last came. */
  usedAt: number
  /** Since when somebody asks who finds no engine; null where there is one, or nobody asks. */
  coldSince: number | null = null
  /** Whether its engine has a place meanwhile, once somebody looked; null where nobody did. */
  placed: boolean | null = null
  /** Whether its engine ends whenever it starts, once somebody looked, and when it is started again; that null: it is being started, or nobody says. */
  failing: { readonly ends: number; readonly nextStart: number | null } | null = null
  /** Milliseconds that the last start took which somebody waited for. */
  lastStart: number | null = null
  readonly #options: PoolOptions
  #step: NodeJS.Timeout | undefined

  constructor(route: Route, options: PoolOptions) {
    this.#options = options
    this.usedAt = options.now()
    this.route = { ...route, endpoints: [] }
    this.adopt(route)
  }

  /** How its engines stand, and how many wait for one. */
  observe(): ObservedPool {
    const now = this.#options.now()
    const engines = { open: 0, full: 0, ejected: 0 }
    for (const engine of this.engines) engines[engine.isEjected(now) ? "ejected" : engine.isFull(now) ? "full" : "open"]++
    return { model: this.route.model, queued: this.queue.size, engines }
  }

  /** Requests that one engine may have at once. */
  get limit(): number {
    return (this.route.concurrency ?? this.#options.unmeasured) + beyondMeasured
  }

  /** Requests that may wait while there are engines. */
  get waitingLimit(): number {
    return waitingPerPlace * this.limit * this.engines.length
  }

  /** Whether one more request of the organization may wait, where `limit` may in all. The queue of a shared model is shared as its places are. */
  mayWait(orgId: string, limit: number): boolean {
    const free = limit - this.queue.size
    return this.route.isPublic ? mayTakePlace(this.queue.sizeOf(orgId), free) : free > 0
  }

  /** Whether a place at its engines is for this organization: on a shared model some stay free for those that hold fewer. */
  #mayTake(orgId: string, now: number): boolean {
    return !this.route.isPublic || mayTakePlace(this.#heldBy(orgId), this.#free(now))
  }

  #heldBy(orgId: string): number {
    let held = 0
    for (const engine of this.engines) held += engine.heldBy(orgId)
    return held
  }

  #free(now: number): number {
    const { limit } = this
    let free = 0
    for (const engine of this.engines) {
      if (!engine.isEjected(now) && !engine.isFull(now)) free += Math.max(0, engine.allowed(limit, now) - engine.outstanding)
    }
    return free
  }

  /** Whose turn it is: on a shared model that of the organization that holds the fewest places, if it may take one. */
  #next(now: number): Waiter | undefined {
    if (!this.route.isPublic) return this.queue.take()
    const free = this.#free(now)
    return this.queue.takeLightest((orgId) => {
      const held = this.#heldBy(orgId)
      return mayTakePlace(held, free) ? held : null
    })
  }

  /** Whether nothing is lost when it is forgotten. */
  isIdleSince(moment: number): boolean {
    return this.queue.size === 0 && this.usedAt < moment && this.engines.every(({ outstanding }) => outstanding === 0)
  }

  /** Looks where requests go now. */
  refresh() {
    const route = this.#options.current(this.route.modelId)
    if (route !== undefined) return this.adopt(route)
    this.adopt({ ...this.route, endpoints: [] })
    for (const waiter of [...this.queue]) waiter.gone()
  }

  /** Takes over where requests go. Engines that are no longer there get nothing any more; what they have comes to its end with whoever sent it. */
  adopt(route: Route) {
    if (route.endpoints === this.route.endpoints && route.revisionId === this.route.revisionId) {
      this.route = route
      return
    }
    const now = this.#options.now()
    const same = route.revisionId === this.route.revisionId
    this.route = route
    this.engines = route.endpoints.map(
      (endpoint) =>
        (same ? this.engines.find((known) => known.endpoint.url === endpoint.url && known.endpoint.pod === endpoint.pod) : undefined) ??
        new EngineState(endpoint, now, this.queue.size > 0)
    )
    if (this.engines.length > 0 && this.coldSince !== null) {
      this.lastStart = now - this.coldSince
      this.coldSince = null
    }
    this.placed = null
    this.failing = null
    if (this.engines.length === 0 && this.queue.size > 0) this.coldSince ??= now
    this.#keepOne(now)
  }

  /** Of several that are all out, the first to come back comes back now: the last one is never taken out. */
  #keepOne(now: number) {
    if (this.engines.some((engine) => !engine.isEjected(now))) return
    const [first] = this.engines.toSorted((one, other) => one.ejectedUntil - other.ejectedUntil)
    if (first !== undefined) first.ejectedUntil = now
  }

  /** An engine with room that has it now, for who does not have to wait behind others; undefined where there is none. */
  take(key: () => number | null, streamed: boolean, orgId: string): EngineState | undefined {
    this.refresh()
    const now = this.#options.now()
    this.usedAt = now
    this.budget.earn()
    if (this.queue.size > 0 || !this.#mayTake(orgId, now)) return undefined
    const [only] = this.engines
    const engine =
      this.engines.length === 1 && only !== undefined
        ? only.outstanding < only.allowed(this.limit, now) && !only.isFull(now)
          ? only
          : undefined
        : this.engines.length === 0
          ? undefined
          : pickEngine(this.engines, { now, limit: this.limit, key: key(), except: [] })
    engine?.enter(now, streamed, orgId)
    return engine
  }

  /** Another engine for a request that those of `except` did not serve; it does not wait. */
  takeOther(except: ReadonlyArray<EngineState>, streamed: boolean, orgId: string): EngineState | undefined {
    const now = this.#options.now()
    const engine = pickEngine(this.engines, { now, limit: this.limit, key: null, except })
    engine?.enter(now, streamed, orgId)
    return engine
  }

  leave(engine: EngineState, streamed: boolean, orgId: string) {
    engine.leave(streamed, orgId)
    if (this.queue.size > 0) this.dispatch()
  }

  /** It failed; out it goes for a while where it did too often and is not the last. */
  fail(engine: EngineState) {
    const now = this.#options.now()
    if (engine.fail(now)) this.eject(engine)
  }

  /** It answered that it failed, although its health may be good; out it goes where it does so to everybody, and is not the last. */
  failAnswer(engine: EngineState, orgId: OrgId) {
    if (engine.failAnswer(orgId)) this.eject(engine)
  }

  /** Whether it was taken out: never the last one. */
  eject(engine: EngineState): boolean {
    const now = this.#options.now()
    if (!this.engines.some((other) => other !== engine && !other.isEjected(now))) return false
    engine.eject(now)
    return true
  }

  /** Gives engines with room to those who wait, in their turns. */
  dispatch() {
    clearTimeout(this.#step)
    this.refresh()
    while (this.queue.size > 0) {
      const now = this.#options.now()
      // All keys are served alike: whether there is room does not depend on whose turn it is.
      if (pickEngine(this.engines, { now, limit: this.limit, key: null, except: [] }) === undefined) {
        this.#stepLater(now)
        return
      }
      const waiter = this.#next(now)
      if (waiter === undefined) {
        // More places may be theirs once the engines have more.
        this.#stepLater(now)
        return
      }
      const engine = pickEngine(this.engines, { now, limit: this.limit, key: waiter.key, except: [] })
      if (engine === undefined) return
      engine.enter(now, waiter.streamed, waiter.orgId)
      waiter.give(engine)
    }
  }

  #stepLater(now: number) {
    const steps = this.engines.flatMap((engine) => engine.nextStep(now) ?? [])
    if (steps.length > 0) this.#step = setTimeout(() => this.dispatch(), Math.ceil(Math.min(...steps)))
  }

  close() {
    clearTimeout(this.#step)
  }
}
