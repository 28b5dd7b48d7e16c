import type { ModelId, OrgId, RevisionId } from "@seatrial/domain"
import type { EndpointLoad, Route, RoutedEndpoint } from "@seatrial/store"
import type { ObservedPool } from "../observability/RoutingMetrics.ts"
import { DecodePace } from "./DecodePace.ts"
import { EngineState } from "./EngineState.ts"
import { FairQueue } from "./FairQueue.ts"
import { mayTakeSlots, mostSlotsOfRequest } from "./mayTakeSlots.ts"
import { pickEngine } from "./pickEngine.ts"
import { RetryBudget } from "./RetryBudget.ts"

/** Requests that an engine may get beyond its measured concurrency. */
const beyondMeasured = 4
/** Requests that may wait per slot of the model's engines. */
const waitingPerSlot = 4

const revisionOf = ({ revisionId }: Route, { retiring }: RoutedEndpoint): RevisionId => retiring?.revisionId ?? revisionId

/** Whether an endpoint of a route is the same engine, with the same revision, as one of an earlier route. */
const isSameEngine = (before: Route, known: RoutedEndpoint, route: Route, endpoint: RoutedEndpoint): boolean =>
  known.url === endpoint.url &&
  known.pod === endpoint.pod &&
  (known.engine ?? endpoint.engine) === endpoint.engine &&
  revisionOf(before, known) === revisionOf(route, endpoint)

/** A request that waits for an engine. */
export interface Waiter {
  readonly orgId: string
  readonly key: number | null
  readonly streamed: boolean
  /** The number of answers that the engine generates for the request at once. Each takes a slot. */
  readonly sequences: number
  /** The request gets this engine. */
  readonly give: (engine: EngineState) => void
  /** The model was deleted. */
  readonly gone: () => void
}

export interface PoolOptions {
  /** Concurrent requests for an engine without a measured concurrency. */
  readonly unmeasured: number
  /** `performance.now()`. */
  readonly now: () => number
  /** The current route of the model; undefined if the model no longer exists. */
  readonly current: (id: ModelId) => Route | undefined
}

/** The engines of one model, their load, and the requests that wait for a slot. Times are `performance.now()`. */
export class ModelPool {
  route: Route
  engines: ReadonlyArray<EngineState> = []
  readonly queue = new FairQueue<Waiter>()
  /**
   * Budget for second attempts. It is per model, so the failing engines of one model do not use up the attempts of
   * other models.
   */
  readonly budget = new RetryBudget()
  readonly decodePace = new DecodePace()
  /** When the last request arrived. */
  usedAt: number
  /** Since when requests wait without any engine; null if there is an engine or no request. */
  coldSince: number | null = null
  /** Whether an engine of the model has GPUs; null before that was checked. */
  placed: boolean | null = null
  /**
   * How often the engine ended during its start, and when it is started next. Null if it does not fail, or if that was
   * not checked yet. `nextStart` is null while the engine is being started, or if unknown.
   */
  failing: { readonly ends: number; readonly nextStart: number | null } | null = null
  /** Milliseconds of the last start for which a request waited. */
  lastStart: number | null = null
  readonly #options: PoolOptions
  #step: NodeJS.Timeout | undefined

  constructor(route: Route, options: PoolOptions) {
    this.#options = options
    this.usedAt = options.now()
    this.route = { ...route, endpoints: [] }
    this.adopt(route)
  }

  /** The number of engines in each state, and of running and waiting requests. */
  observe(): ObservedPool {
    const now = this.#options.now()
    const engines = { open: 0, full: 0, ejected: 0 }
    for (const engine of this.engines) engines[engine.isEjected(now) ? "ejected" : engine.isFull(now) ? "full" : "open"]++
    const running = this.engines.reduce((total, { outstanding }) => total + outstanding, 0)
    return { model: this.route.model, running, queued: this.queue.size, engines }
  }

  /**
   * The requests that run on each engine, and those that wait for any. While the model moves from one revision to
   * another, also how many requests each engine answered and how many attempts failed since the move began.
   */
  loads(): ReadonlyArray<EndpointLoad> {
    const { modelId, orgId } = this.route
    const isMoving = this.engines.some(({ endpoint }) => endpoint.retiring !== undefined)
    const running = this.engines.map(({ endpoint: { pod }, failedRequests, goodRequests, outstanding }) => {
      const answers = isMoving ? { answered: goodRequests, failed: failedRequests } : { answered: 0, failed: 0 }
      return { orgId, modelId, pod, running: outstanding, waiting: 0, ...answers }
    })
    return [...running, { orgId, modelId, pod: "", running: 0, waiting: this.queue.size, answered: 0, failed: 0 }]
  }

  /** Requests that one engine can process at once, as its trial measured. */
  get concurrency(): number {
    return this.route.concurrency ?? this.#options.unmeasured
  }

  /** Slots of one engine. A request takes one for each answer that it asks for. */
  get limit(): number {
    return this.concurrency + beyondMeasured
  }

  /** Requests that may wait while there are engines. */
  get waitingLimit(): number {
    return waitingPerSlot * this.limit * this.engines.length
  }

  /**
   * Whether one more request of the organization may wait. `limit` is the length of the queue. Organizations share the
   * queue of a public model in the same way as its slots.
   */
  mayWait(orgId: string, limit: number): boolean {
    const free = limit - this.queue.size
    return this.route.isPublic ? mayTakeSlots(this.queue.sizeOf(orgId), free) : free > 0
  }

  /** The most slots that one request may take. On a public model, every request leaves some to other organizations. */
  get mostSequences(): number {
    return this.route.isPublic ? mostSlotsOfRequest(this.limit) : Number.POSITIVE_INFINITY
  }

  /**
   * Whether the organization may take free slots. On a public model some slots stay free for organizations that hold
   * fewer.
   */
  #mayTakeSlots(orgId: string, sequences: number, now: number): boolean {
    return !this.route.isPublic || mayTakeSlots(this.#heldBy(orgId), this.#free(now), sequences)
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

  /**
   * Removes the next waiting request. On a public model it belongs to the organization with the fewest slots, if that
   * organization may take one.
   */
  #next(now: number): Waiter | undefined {
    if (!this.route.isPublic) return this.queue.take()
    const free = this.#free(now)
    return this.queue.takeLightest((orgId, { sequences }) => {
      const held = this.#heldBy(orgId)
      return mayTakeSlots(held, free, sequences) ? held : null
    })
  }

  /** Whether the pool can be discarded without loss. */
  isIdleSince(moment: number): boolean {
    return this.queue.size === 0 && this.usedAt < moment && this.engines.every(({ outstanding }) => outstanding === 0)
  }

  /** Reads the current route. */
  refresh() {
    const route = this.#options.current(this.route.modelId)
    if (route !== undefined) return this.adopt(route)
    this.adopt({ ...this.route, endpoints: [] })
    for (const waiter of [...this.queue]) waiter.gone()
  }

  /** Applies a route. Engines that are no longer in it get no new requests; their running requests continue. */
  adopt(route: Route) {
    if (route.endpoints === this.route.endpoints && route.revisionId === this.route.revisionId) {
      this.route = route
      return
    }
    const now = this.#options.now()
    const before = this.route
    this.route = route
    this.engines = route.endpoints.map((endpoint) => {
      const known = this.engines.find((engine) => isSameEngine(before, engine.endpoint, route, endpoint))
      if (known === undefined) return new EngineState(endpoint, now, this.queue.size > 0)
      known.endpoint = endpoint
      if (before.revisionId !== route.revisionId) known.resetAnswers()
      return known
    })
    if (this.engines.length > 0 && this.coldSince !== null) {
      this.lastStart = now - this.coldSince
      this.coldSince = null
    }
    this.placed = null
    this.failing = null
    if (this.engines.length === 0 && this.queue.size > 0) this.coldSince ??= now
    this.#keepOne(now)
  }

  /**
   * If all other engines are ejected, the last engine gets all requests. If all are ejected, that is the engine whose
   * ejection ends first.
   */
  #keepOne(now: number) {
    const [last, another] = this.engines.toSorted((one, other) => one.ejectedUntil - other.ejectedUntil)
    if (another === undefined || another.isEjected(now)) last?.readmit(now)
  }

  /** Reserves slots at an engine. Returns undefined if there are none, or if other requests are waiting already. */
  take(key: () => number | null, streamed: boolean, orgId: string, sequences = 1): EngineState | undefined {
    this.refresh()
    const now = this.#options.now()
    this.usedAt = now
    this.budget.earn()
    if (this.queue.size > 0 || !this.#mayTakeSlots(orgId, sequences, now)) return undefined
    const [only] = this.engines
    const engine =
      this.engines.length === 1 && only !== undefined
        ? only.outstanding < only.allowed(this.limit, now) && !only.isFull(now)
          ? only
          : undefined
        : this.engines.length === 0
          ? undefined
          : pickEngine(this.engines, { now, limit: this.limit, concurrency: this.concurrency, key: key(), except: [] })
    engine?.enter(now, streamed, orgId, sequences)
    return engine
  }

  /** Reserves slots at another engine of the revision, for a second attempt. Ignores the queue. */
  takeOther(engineBefore: EngineState, revision: RevisionId, streamed: boolean, orgId: string, sequences = 1): EngineState | undefined {
    const now = this.#options.now()
    const except = this.engines.filter((engine) => engine === engineBefore || revisionOf(this.route, engine.endpoint) !== revision)
    const engine = pickEngine(this.engines, { now, limit: this.limit, concurrency: this.concurrency, key: null, except })
    engine?.enter(now, streamed, orgId, sequences)
    return engine
  }

  leave(engine: EngineState, streamed: boolean, orgId: string, sequences = 1) {
    engine.leave(streamed, orgId, sequences)
    if (this.queue.size > 0) this.dispatch()
  }

  /** Records a good answer. */
  answered(engine: EngineState) {
    if (engine.answered(this.#options.now()) && this.queue.size > 0) this.dispatch()
  }

  /** Records that the connection of a request failed: a failed attempt and a failure of the engine. */
  lose(engine: EngineState, orgId: OrgId) {
    engine.countFailure(orgId, this.route.isPublic)
    this.fail(engine)
  }

  /** Records a failure. Ejects the engine if it failed too often and is not the last one. */
  fail(engine: EngineState) {
    const now = this.#options.now()
    if (engine.fail(now)) this.eject(engine)
  }

  /**
   * Records an error answer, which an engine may give although its health check passes. Ejects the engine if all recent
   * answers failed and it is not the last one.
   */
  failAnswer(engine: EngineState, orgId: OrgId) {
    engine.countFailure(orgId, this.route.isPublic)
    if (engine.failAnswer(orgId)) this.eject(engine)
  }

  /** Ejects the engine and returns true, unless it is the last one. */
  eject(engine: EngineState): boolean {
    const now = this.#options.now()
    if (!this.engines.some((other) => other !== engine && !other.isEjected(now))) return false
    engine.eject(now)
    this.#keepOne(now)
    return true
  }

  /** Assigns free slots to waiting requests. */
  dispatch() {
    clearTimeout(this.#step)
    this.refresh()
    while (this.queue.size > 0) {
      const now = this.#options.now()
      // No key: whether any engine has room does not depend on the next request.
      if (pickEngine(this.engines, { now, limit: this.limit, concurrency: this.concurrency, key: null, except: [] }) === undefined) {
        this.#stepLater(now)
        return
      }
      const waiter = this.#next(now)
      if (waiter === undefined) {
        // Slow start may free more slots later, so that these organizations may take one.
        this.#stepLater(now)
        return
      }
      const engine = pickEngine(this.engines, { now, limit: this.limit, concurrency: this.concurrency, key: waiter.key, except: [] })
      if (engine === undefined) return
      engine.enter(now, waiter.streamed, waiter.orgId, waiter.sequences)
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
