import { Effect, FiberMap, Option, Queue, type Scope } from "effect"

export interface Entry {
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

const never = Number.POSITIVE_INFINITY

/** When the keys of a queue are due, and in which order. Times are in monotonic milliseconds. */
export interface KeySchedule<K extends string> {
  /** Makes a key ready, or notes that it was added during its pass. */
  readonly add: (key: K, now: number) => void
  /** Makes a key ready at a time, unless an earlier one is scheduled. */
  readonly addAt: (key: K, due: number, now: number) => void
  /** Waits for a ready key and begins its pass. */
  readonly take: Effect.Effect<{ readonly key: K; readonly entry: Entry } | undefined>
  readonly enqueue: (key: K, entry: Entry, now: number) => void
  /** Makes a key ready at a time. Runs without a yield, so that no other fiber sees an inconsistent state. */
  readonly wait: (key: K, entry: Entry, due: number, now: number) => void
  readonly remove: (key: K) => void
  /** Whether a pass for the key is running, ready or delayed. */
  readonly isScheduled: (key: K, now: number) => boolean
  readonly entries: () => Iterable<Entry>
  readonly size: () => number
  readonly backlog: () => number
}

/** The ready keys in two lanes. Each key is in one of them, in the order in which the keys became ready. */
class Lanes<K extends string> {
  readonly #isUrgent: (key: K) => boolean
  readonly #urgent = new Set<K>()
  readonly #normal = new Set<K>()
  #turns = 0

  constructor(isUrgent: (key: K) => boolean) {
    this.#isUrgent = isUrgent
  }

  get size(): number {
    return this.#urgent.size + this.#normal.size
  }

  add(key: K): void {
    if (this.#isUrgent(key)) this.#urgent.add(key)
    else this.#normal.add(key)
  }

  takeNext(): K | undefined {
    this.#turns += 1
    const isUrgentTurn = this.#urgent.size > 0 && (this.#normal.size === 0 || this.#turns % turnsOfUrgent !== 0)
    const lane = isUrgentTurn ? this.#urgent : this.#normal
    const [key] = lane
    if (key !== undefined) lane.delete(key)
    return key
  }
}

/** Makes an empty schedule. Its timers end with the scope. */
export const makeKeySchedule = Effect.fnUntraced(function* <K extends string>(
  isUrgent: (key: K) => boolean
): Effect.fn.Return<KeySchedule<K>, never, Scope.Scope> {
  const entries = new Map<K, Entry>()
  const lanes = new Lanes<K>(isUrgent)
  // One element per ready key.
  const ready = yield* Queue.unbounded<undefined>()
  const timers = yield* FiberMap.make<K>()
  const startTimer = yield* FiberMap.runtime(timers)<never>()

  const enqueue = (key: K, entry: Entry, now: number) => {
    entry.state = "ready"
    entry.since = now
    entry.due = never
    lanes.add(key)
    Queue.offerUnsafe(ready, undefined)
  }
  const wait = (key: K, entry: Entry, due: number, now: number) => {
    entry.state = "waiting"
    entry.due = due
    const elapsed = Effect.sync(() => {
      if (entry.state === "waiting" && entry.due === due) enqueue(key, entry, due)
    })
    startTimer(key, Effect.andThen(Effect.sleep(Math.max(0, due - now)), elapsed))
  }
  const open = (key: K, now: number): Entry => {
    const entry: Entry = { state: "ready", failures: 0, again: false, since: now, due: never }
    entries.set(key, entry)
    return entry
  }

  return {
    add: (key, now) => {
      const entry = entries.get(key)
      if (entry === undefined) enqueue(key, open(key, now), now)
      else if (entry.state === "working") entry.again = true
      else if (entry.state === "waiting") {
        enqueue(key, entry, now)
        Option.getOrUndefined(FiberMap.getUnsafe(timers, key))?.interruptUnsafe()
      }
    },
    addAt: (key, due, now) => {
      const entry = entries.get(key)
      if (entry === undefined) wait(key, open(key, now), due, now)
      else if (entry.state === "working") entry.due = Math.min(entry.due, due)
      else if (entry.state === "waiting" && due < entry.due) wait(key, entry, due, now)
    },
    take: Effect.map(Queue.take(ready), () => {
      const key = lanes.takeNext()
      const entry = key === undefined ? undefined : entries.get(key)
      if (key === undefined || entry === undefined) return undefined
      entry.state = "working"
      entry.again = false
      return { key, entry }
    }),
    enqueue,
    wait,
    remove: (key) => entries.delete(key),
    isScheduled: (key, now) => {
      const entry = entries.get(key)
      return entry !== undefined && (entry.state !== "waiting" || entry.due > now)
    },
    entries: () => entries.values(),
    size: () => entries.size,
    backlog: () => lanes.size
  }
})
