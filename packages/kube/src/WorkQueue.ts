import { Cause, Duration, Effect, Exit, FiberMap, Option, Queue, Random, Schedule, type Scope } from "effect"
import { KubeError } from "./KubeError.ts"
import { kubeMetrics } from "./metrics.ts"
import { monotonicMillis } from "./monotonicMillis.ts"

/** Work by key: one pass at a time for each key, and what is added during a pass becomes one more pass. */
export interface WorkQueue<K extends string = string> {
  /** A pass for this key as soon as there is room; at once also where a later one was waited for. */
  readonly add: (key: K) => Effect.Effect<void>
  /** A pass for this key after this time, unless one comes earlier. */
  readonly addAfter: (key: K, delay: Duration.Input) => Effect.Effect<void>
  /** Keys at work, ready, or waiting for their time. A key that rests is not among them. */
  readonly size: Effect.Effect<number>
  /** Keys that are ready and wait for a worker. */
  readonly backlog: () => number
  /** Whether a pass for this key is under way, is ready, or waits for a time that has not come. */
  readonly isScheduled: (key: K) => Effect.Effect<boolean>
}

export interface WorkQueueOptions<K extends string, E, R> {
  /** What its metrics call it; none of a queue without a name. */
  readonly name?: string
  /** Passes at once, over all keys. */
  readonly concurrency: number
  /** Whether a key that becomes ready goes before those of which this is false; of these one in eight has its turn all the same. Default: none does. */
  readonly isUrgent?: (key: K) => boolean
  /** One pass. A duration means: look again after it. A failure, a defect too, means: again after a back-off, or as late as the server asked. */
  readonly work: (key: K) => Effect.Effect<Option.Option<Duration.Duration>, E, R>
  /** Delay after a key's first failure, doubled by each that follows. Default 500 ms. */
  readonly backoff?: Duration.Input
  /** Default one minute. */
  readonly maxBackoff?: Duration.Input
  /** After which a pass that has not ended is interrupted, and counts as failed. By default a pass may take any time. */
  readonly passTimeout?: Duration.Input
}

interface Entry {
  state: "ready" | "working" | "waiting"
  failures: number
  /** Added while at work. */
  again: boolean
  /** Since when it has been `ready`, monotonic milliseconds. */
  since: number
  /** The earliest time asked for, in monotonic milliseconds: while `waiting` its timer's, while `working` that of an `addAfter` meanwhile. */
  due: number
}

/** Of so many turns one is for those who are not urgent, where some wait. */
const turnsOfUrgent = 8

/** As a watch: whatever a server asks for. */
const longestAsked = 300_000

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
  // They hold each key that is ready once, in the order in which they became so.
  const urgent = new Set<K>()
  const others = new Set<K>()
  // One for each of them.
  const ready = yield* Queue.unbounded<undefined>()
  let turns = 0
  const takeNext = (): K | undefined => {
    turns += 1
    const lane = urgent.size > 0 && (others.size === 0 || turns % turnsOfUrgent !== 0) ? urgent : others
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
    else others.add(key)
    Queue.offerUnsafe(ready, undefined)
  }

  // Without a yield between its steps, so that no other fibre sees a key half moved.
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
        const made: Entry = { state: "ready", failures: 0, again: false, since: now, due: Number.POSITIVE_INFINITY }
        entries.set(key, made)
        enqueue(key, made, now)
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
        const made: Entry = { state: "waiting", failures: 0, again: false, since: now, due }
        entries.set(key, made)
        wait(key, made, due, now)
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
      // A little more than a server asked for, so that not all keys come back at once.
      const asked = Math.min(retryAfter, longestAsked) * (1 + 0.1 * (yield* Random.next))
      const delay = Math.max(asked, base * (0.5 + 0.5 * (yield* Random.next)))
      yield* Effect.logWarning(`work on ${key} failed ${entry.failures} times and is tried again in ${Math.round(delay)} ms`, Cause.pretty(exit.cause))
      // What was added meanwhile waits too: it may be what the failed pass itself has written.
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
    backlog: () => urgent.size + others.size,
    isScheduled: (key) =>
      Effect.map(monotonicMillis, (now) => {
        const entry = entries.get(key)
        return entry !== undefined && (entry.state !== "waiting" || entry.due > now)
      })
  }
  return queue
})

export const WorkQueue = { make }
