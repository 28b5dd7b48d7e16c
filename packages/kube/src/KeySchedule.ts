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

type StartTimer<K> = (key: K, effect: Effect.Effect<void>) => unknown

/** When the keys of a queue are due, and in which order. Times are in monotonic milliseconds. */
export class KeySchedule<K extends string> {
  readonly #entries = new Map<K, Entry>()
  readonly #lanes: Lanes<K>
  /** One element per ready key. */
  readonly #ready: Queue.Queue<undefined>
  readonly #timers: FiberMap.FiberMap<K>
  readonly #startTimer: StartTimer<K>
  /** Waits for a ready key and begins its pass. */
  readonly take: Effect.Effect<{ readonly key: K; readonly entry: Entry } | undefined>

  constructor(isUrgent: (key: K) => boolean, ready: Queue.Queue<undefined>, timers: FiberMap.FiberMap<K>, startTimer: StartTimer<K>) {
    this.#lanes = new Lanes(isUrgent)
    this.#ready = ready
    this.#timers = timers
    this.#startTimer = startTimer
    this.take = Effect.map(Queue.take(ready), () => this.#begin())
  }

  /** Number of keys that are running, ready or delayed. */
  get size(): number {
    return this.#entries.size
  }

  /** Number of ready keys. */
  get backlog(): number {
    return this.#lanes.size
  }

  entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  /** Whether a pass for the key is running, ready or delayed. */
  isScheduled(key: K, now: number): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && (entry.state !== "waiting" || entry.due > now)
  }

  /** Makes a key ready, or notes that it was added during its pass. */
  add(key: K, now: number): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) this.enqueue(key, this.#open(key, now), now)
    else if (entry.state === "working") entry.again = true
    else if (entry.state === "waiting") {
      this.enqueue(key, entry, now)
      Option.getOrUndefined(FiberMap.getUnsafe(this.#timers, key))?.interruptUnsafe()
    }
  }

  /** Makes a key ready at a time, unless an earlier one is scheduled. */
  addAt(key: K, due: number, now: number): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) this.wait(key, this.#open(key, now), due, now)
    else if (entry.state === "working") entry.due = Math.min(entry.due, due)
    else if (entry.state === "waiting" && due < entry.due) this.wait(key, entry, due, now)
  }

  enqueue(key: K, entry: Entry, now: number): void {
    entry.state = "ready"
    entry.since = now
    entry.due = never
    this.#lanes.add(key)
    Queue.offerUnsafe(this.#ready, undefined)
  }

  /** Makes a key ready at a time. Runs without a yield, so that no other fiber sees an inconsistent state. */
  wait(key: K, entry: Entry, due: number, now: number): void {
    entry.state = "waiting"
    entry.due = due
    const elapsed = Effect.sync(() => {
      if (entry.state === "waiting" && entry.due === due) this.enqueue(key, entry, due)
    })
    this.#startTimer(key, Effect.andThen(Effect.sleep(Math.max(0, due - now)), elapsed))
  }

  remove(key: K): void {
    this.#entries.delete(key)
  }

  #open(key: K, now: number): Entry {
    const entry: Entry = { state: "ready", failures: 0, again: false, since: now, due: never }
    this.#entries.set(key, entry)
    return entry
  }

  #begin() {
    const key = this.#lanes.takeNext()
    const entry = key === undefined ? undefined : this.#entries.get(key)
    if (key === undefined || entry === undefined) return undefined
    entry.state = "working"
    entry.again = false
    return { key, entry }
  }
}

/** Makes an empty schedule. Its timers end with the scope. */
export const makeKeySchedule = Effect.fnUntraced(function* <K extends string>(
  isUrgent: (key: K) => boolean
): Effect.fn.Return<KeySchedule<K>, never, Scope.Scope> {
  const ready = yield* Queue.unbounded<undefined>()
  const timers = yield* FiberMap.make<K>()
  return new KeySchedule(isUrgent, ready, timers, yield* FiberMap.runtime(timers)<never>())
})
