import { Cause, Duration, Effect, Exit, FiberMap, Option, Queue, Random, Schedule, type Scope } from "effect"
import { KubeError } from "./KubeError.ts"
import { kubeMetrics } from "./metrics.ts"
import { monotonicMillis } from "./monotonicMillis.ts"

/** Work by key. At most one pass per key runs at a time. Keys that are added during their pass get one more pass. */
export interface WorkQueue<K extends string = string> {
  /** Schedules a pass for the key as soon as a worker is free, and cancels a pending delay. */
  readonly add: (key: K) => Effect.Effect<void>
  /** Schedules a pass for the key after a delay, unless an earlier one is scheduled. */
  readonly addAfter: (key: K, delay: Duration.Input) => Effect.Effect<void>
  /** Number of keys that are running, ready or delayed. Idle keys are not included. */
  readonly size: Effect.Effect<number>
  /** Number of keys that are ready and wait for a worker. */
  readonly backlog: () => number
  /** Whether a pass for the key is running, ready or delayed. */
  readonly isScheduled: (key: K) => Effect.Effect<boolean>
}

export interface WorkQueueOptions<K extends string, E, R> {
  /** The queue's label in metrics. A queue without a name has no metrics. */
  readonly name?: string
  /** Maximum number of concurrent passes over all keys. */
  readonly concurrency: number
  /**
   * Whether a key takes precedence when it becomes ready. Every eighth turn goes to a key without precedence. Default:
   * no key has it.
   */
  readonly isUrgent?: (key: K) => boolean
  /**
   * Runs one pass. A returned duration schedules the next pass. After a failure or defect, the pass is retried after a
   * back-off or the server's `Retry-After`, whichever is later.
   */
  readonly work: (key: K) => Effect.Effect<Option.Option<Duration.Duration>, E, R>
  /** Delay after a key's first failure; doubles with each further failure. Default 500 ms. */
  readonly backoff?: Duration.Input
  /** Default one minute. */
  readonly maxBackoff?: Duration.Input
  /** A pass that takes longer is interrupted and counts as failed. Default: no limit. */
  readonly passTimeout?: Duration.Input
}

interface Entry {
  state: "ready" | "working" | "waiting"
  failures: number
  /** Whether the key was added during its pass. */
  again: boolean
  /** When the key became `ready`, in monotonic milliseconds. */
  since: number
  /**
   * The earliest requested time in monotonic milliseconds. While `waiting`: the timer's. While `working`: the time of
   * an `addAfter` during the pass.
   */
  due: number
}

/** One of this number of turns goes to a key without precedence, if there is one. */
const turnsOfUrgent = 8

/** The upper bound for a server's `Retry-After`, as for watches. */
const maxRetryAfterMillis = 300_000

const kubeErrorOf = (cause: Cause.Cause<unknown>): KubeError | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error instanceof KubeError ? error : undefined
}

const make = Effect.fnUntraced(function* <K extends string, E, R>(options: WorkQueueOptions<K, E, R>): Effect.fn.Return<WorkQueue<K>, never, R | Scope.Scope> {
  const measured = (update: (labels: { readonly queue: string }) => Effect.Effect<void>) =>
    options.name === undefined ? Effect.void : update({ queue: options.name })
  const backoff = Duration.toMillis(options.backoff ?? "500 millis")
  const maxBackoff = Duration.toMillis(options.maxBackoff ?? "1 minute")
  const work = (key: K) => (options.passTimeout === undefined ? options.work(key) : Effect.timeout(options.work(key), options.passTimeout))
  const entries = new Map<K, Entry>()
  // Each ready key is in exactly one of these sets, in the order in which the keys became ready.
  const urgent = new Set<K>()
  const normal = new Set<K>()
  // One element per ready key.
  const ready = yield* Queue.unbounded<undefined>()
  let turns = 0
  const takeNext = (): K | undefined => {
    turns += 1
    const lane = urgent.size > 0 && (normal.size === 0 || turns % turnsOfUrgent !== 0) ? urgent : normal
    const [key] = lane
    if (key !== undefined) lane.delete(key)
    return key
  }
  const timers = yield* FiberMap.make<K>()
  const startTimer = yield* FiberMap.runtime(timers)<never>()

  const enqueue = (key: K, entry: Entry, now: number) => {
    entry.state = "ready"
    entry.since = now
    entry.due = Number.POSITIVE_INFINITY
    if (options.isUrgent?.(key) === true) urgent.add(key)
    else normal.add(key)
    Queue.offerUnsafe(ready, undefined)
  }

  // This must run without a yield, so that no other fiber sees an inconsistent state.
  const wait = (key: K, entry: Entry, due: number, now: number) => {
    entry.state = "waiting"
    entry.due = due
    const elapsed = Effect.sync(() => {
      if (entry.state === "waiting" && entry.due === due) enqueue(key, entry, due)
    })
    startTimer(key, Effect.andThen(Effect.sleep(Math.max(0, due - now)), elapsed))
  }

  const add = (key: K) =>
    Effect.flatMap(monotonicMillis, (now) => {
      const entry = entries.get(key)
      if (entry === undefined) {
        const entry: Entry = { state: "ready", failures: 0, again: false, since: now, due: Number.POSITIVE_INFINITY }
        entries.set(key, entry)
        enqueue(key, entry, now)
      } else if (entry.state === "working") {
        entry.again = true
      } else if (entry.state === "waiting") {
        enqueue(key, entry, now)
        Option.getOrUndefined(FiberMap.getUnsafe(timers, key))?.interruptUnsafe()
      }
      return measured((labels) => kubeMetrics.queueAdds.update(labels, 1))
    })

  const addAfter = (key: K, delay: Duration.Input) =>
    Effect.map(monotonicMillis, (now) => {
      const due = now + Duration.toMillis(delay)
      const entry = entries.get(key)
      if (entry === undefined) {
        const entry: Entry = { state: "waiting", failures: 0, again: false, since: now, due }
        entries.set(key, entry)
        wait(key, entry, due, now)
      } else if (entry.state === "working") {
        entry.due = Math.min(entry.due, due)
      } else if (entry.state === "waiting" && due < entry.due) {
        wait(key, entry, due, now)
      }
    })

  const pass = Effect.fnUntraced(function* () {
    const key = takeNext()
    const entry = key === undefined ? undefined : entries.get(key)
    if (key === undefined || entry === undefined) return
    entry.state = "working"
    entry.again = false
    const startedAt = yield* monotonicMillis
    const exit = yield* Effect.exit(Effect.suspend(() => work(key)))
    const now = yield* monotonicMillis
    const outcome = Exit.isSuccess(exit) ? "done" : "failed"
    yield* measured((labels) => kubeMetrics.passSeconds.update({ ...labels, outcome }, (now - startedAt) / 1_000))
    if (Exit.isFailure(exit)) {
      const { reason = "fault", retryAfter = 0 } = kubeErrorOf(exit.cause) ?? {}
      yield* measured((labels) => Effect.andThen(kubeMetrics.passErrors.update({ ...labels, reason }, 1), kubeMetrics.queueRetries.update(labels, 1)))
      entry.failures += 1
      const base = Math.min(maxBackoff, backoff * 2 ** Math.min(entry.failures - 1, 30))
      // Add up to 10% to the requested delay, so that not all keys return at once.
      const requestedDelay = Math.min(retryAfter, maxRetryAfterMillis) * (1 + 0.1 * (yield* Random.next))
      const delay = Math.max(requestedDelay, base * (0.5 + 0.5 * (yield* Random.next)))
      yield* Effect.logWarning(`work on ${key} failed ${entry.failures} times and will be retried in ${Math.round(delay)} ms`, Cause.pretty(exit.cause))
      // A key added during the failed pass also waits, because the pass itself may have caused the change.
      return wait(key, entry, Math.min(now + delay, entry.due), now)
    }
    entry.failures = 0
    const next = Option.match(exit.value, { onNone: () => entry.due, onSome: (duration) => Math.min(entry.due, now + Duration.toMillis(duration)) })
    if (entry.again || next <= now) return enqueue(key, entry, now)
    if (next !== Number.POSITIVE_INFINITY) return wait(key, entry, next, now)
    entries.delete(key)
  })

  yield* Effect.forEach(Array.from({ length: options.concurrency }), () => Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(ready), pass()))), {
    discard: true
  })

  const sample = Effect.flatMap(monotonicMillis, (now) => {
    const waiting = [...entries.values()].filter(({ state }) => state === "ready")
    const oldest = waiting.reduce((earliest, { since }) => Math.min(earliest, since), now)
    return measured((labels) =>
      Effect.andThen(kubeMetrics.queueDepth.update(labels, waiting.length), kubeMetrics.queueOldest.update(labels, (now - oldest) / 1_000))
    )
  })
  if (options.name !== undefined) yield* Effect.forkScoped(Effect.repeat(sample, Schedule.spaced("5 seconds")))

  const queue: WorkQueue<K> = {
    add,
    addAfter,
    size: Effect.sync(() => entries.size),
    backlog: () => urgent.size + normal.size,
    isScheduled: (key) =>
      Effect.map(monotonicMillis, (now) => {
        const entry = entries.get(key)
        return entry !== undefined && (entry.state !== "waiting" || entry.due > now)
      })
  }
  return queue
})

export const WorkQueue = { make }
