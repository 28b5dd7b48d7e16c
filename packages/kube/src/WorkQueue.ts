import { monotonicMillis } from "@seatrial/domain"
import { Cause, Duration, Effect, Exit, Option, Random, Schedule, type Scope } from "effect"
import { type Entry, type KeySchedule, makeKeySchedule } from "./KeySchedule.ts"
import { KubeError } from "./KubeError.ts"
import { kubeMetrics } from "./metrics.ts"

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
  /** The group of a key when it becomes ready. Groups take turns, however many keys each of them has. Default: one group. */
  readonly groupOf?: (key: K) => string
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

/** The upper bound for a server's `Retry-After`, as for watches. */
const maxRetryAfterMillis = 300_000

const kubeErrorOf = (cause: Cause.Cause<unknown>): KubeError | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error instanceof KubeError ? error : undefined
}

/** Milliseconds until a failed pass is retried: the back-off, or what the server asks for if that is longer. */
const retryDelay = Effect.fnUntraced(function* (backoff: number, maxBackoff: number, failures: number, retryAfter: number) {
  const base = Math.min(maxBackoff, backoff * 2 ** Math.min(failures - 1, 30))
  // Add up to 10% to the requested delay, so that not all keys return at once.
  const requestedDelay = Math.min(retryAfter, maxRetryAfterMillis) * (1 + 0.1 * (yield* Random.next))
  return Math.max(requestedDelay, base * (0.5 + 0.5 * (yield* Random.next)))
})

/** The metrics of a queue; nothing for one without a name. */
const metricsOf = (name: string | undefined) => {
  const measured = (update: (labels: { readonly queue: string }) => Effect.Effect<void>) => (name === undefined ? Effect.void : update({ queue: name }))
  return {
    added: measured((labels) => kubeMetrics.queueAdds.update(labels, 1)),
    passed: (outcome: "done" | "failed", millis: number) => measured((labels) => kubeMetrics.passSeconds.update({ ...labels, outcome }, millis / 1_000)),
    failed: (reason: string) =>
      measured((labels) => Effect.andThen(kubeMetrics.passErrors.update({ ...labels, reason }, 1), kubeMetrics.queueRetries.update(labels, 1))),
    sampled: (depth: number, oldestMillis: number) =>
      measured((labels) => Effect.andThen(kubeMetrics.queueDepth.update(labels, depth), kubeMetrics.queueOldest.update(labels, oldestMillis / 1_000)))
  }
}

/** Reports how many keys are ready, and how long the oldest has been. */
const sampleOf = <K extends string>(schedule: KeySchedule<K>, metrics: ReturnType<typeof metricsOf>) =>
  Effect.flatMap(monotonicMillis, (now) => {
    const waiting = [...schedule.entries()].filter(({ state }) => state === "ready")
    const oldest = waiting.reduce((earliest, { since }) => Math.min(earliest, since), now)
    return metrics.sampled(waiting.length, now - oldest)
  })

const make = Effect.fnUntraced(function* <K extends string, E, R>(options: WorkQueueOptions<K, E, R>): Effect.fn.Return<WorkQueue<K>, never, R | Scope.Scope> {
  const { concurrency, groupOf = () => "", isUrgent = () => false, name, passTimeout } = options
  const metrics = metricsOf(name)
  const backoff = Duration.toMillis(options.backoff ?? "500 millis")
  const maxBackoff = Duration.toMillis(options.maxBackoff ?? "1 minute")
  const work = (key: K) => (passTimeout === undefined ? options.work(key) : Effect.timeout(options.work(key), passTimeout))
  const schedule = yield* makeKeySchedule({ isUrgent, groupOf })

  const retry = Effect.fnUntraced(function* (key: K, entry: Entry, cause: Cause.Cause<unknown>, now: number) {
    const { reason = "fault", retryAfter = 0 } = kubeErrorOf(cause) ?? {}
    yield* metrics.failed(reason)
    entry.failures += 1
    const delay = yield* retryDelay(backoff, maxBackoff, entry.failures, retryAfter)
    yield* Effect.logWarning(`work on ${key} failed ${entry.failures} times and will be retried in ${Math.round(delay)} ms`, Cause.pretty(cause))
    // A key added during the failed pass also waits, because the pass itself may have caused the change.
    schedule.wait(key, entry, Math.min(now + delay, entry.due), now)
  })

  /** Schedules the next pass after a successful one. */
  const proceed = (key: K, entry: Entry, delay: Option.Option<Duration.Duration>, now: number) => {
    entry.failures = 0
    const next = Option.match(delay, { onNone: () => entry.due, onSome: (duration) => Math.min(entry.due, now + Duration.toMillis(duration)) })
    if (entry.again || next <= now) schedule.enqueue(key, entry, now)
    else if (next === Number.POSITIVE_INFINITY) schedule.remove(key)
    else schedule.wait(key, entry, next, now)
  }

  const pass = Effect.gen(function* () {
    const taken = yield* schedule.take
    if (taken === undefined) return
    const { entry, key } = taken
    const startedAt = yield* monotonicMillis
    const exit = yield* Effect.exit(Effect.suspend(() => work(key)))
    const now = yield* monotonicMillis
    yield* metrics.passed(Exit.isSuccess(exit) ? "done" : "failed", now - startedAt)
    if (Exit.isFailure(exit)) yield* retry(key, entry, exit.cause, now)
    else proceed(key, entry, exit.value, now)
  })
  yield* Effect.forEach(Array.from({ length: concurrency }), () => Effect.forkScoped(Effect.forever(pass)), { discard: true })

  if (name !== undefined) yield* Effect.forkScoped(Effect.repeat(sampleOf(schedule, metrics), Schedule.spaced("5 seconds")))

  const queue: WorkQueue<K> = {
    add: (key) =>
      Effect.flatMap(monotonicMillis, (now) =>
        Effect.andThen(
          Effect.sync(() => schedule.add(key, now)),
          metrics.added
        )
      ),
    addAfter: (key, delay) => Effect.map(monotonicMillis, (now) => schedule.addAt(key, now + Duration.toMillis(delay), now)),
    size: Effect.sync(() => schedule.size),
    backlog: () => schedule.backlog,
    isScheduled: (key) => Effect.map(monotonicMillis, (now) => schedule.isScheduled(key, now))
  }
  return queue
})

export const WorkQueue = { make }
