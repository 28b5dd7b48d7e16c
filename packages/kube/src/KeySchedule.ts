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

/** How ready keys take turns. */
export interface Turns<K extends string> {
  /** Whether a key takes precedence when it becomes ready. */
  readonly isUrgent: (key: K) => boolean
  /** The group of a key when it becomes ready. */
  readonly groupOf: (key: K) => string
}

/** Ready keys. Groups take turns; the keys of a group are in the order in which they became ready. */
class Lane<K extends string> {
  /** The group whose turn is next comes first. No group is empty. */
  readonly #groups = new Map<string, Set<K>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: K, group: string): void {
    const keys = this.#groups.get(group)
    if (keys === undefined) this.#groups.set(group, new Set([key]))
    else keys.add(key)
    this.#size += 1
  }

  takeNext(): K | undefined {
    const [next] = this.#groups
    if (next === undefined) return undefined
    const [group, keys] = next
    const [key] = keys
    if (key === undefined) return undefined
    keys.delete(key)
    this.#size -= 1
    this.#groups.delete(group)
    if (keys.size > 0) this.#groups.set(group, keys)
    return key
  }
}

/** The ready keys in two lanes. Each key is in one of them. */
class Lanes<K extends string> {
  readonly #order: Turns<K>
  readonly #urgent = new Lane<K>()
  readonly #normal = new Lane<K>()
  #turns = 0

  constructor(order: Turns<K>) {
    this.#order = order
  }

  get size(): number {
    return this.#urgent.size + this.#normal.size
  }

  add(key: K): void {
    const lane = this.#order.isUrgent(key) ? this.#urgent : this.#normal
    lane.add(key, this.#order.groupOf(key))
  }

  takeNext(): K | undefined {
    this.#turns += 1
    const isUrgentTurn = this.#urgent.size > 0 && (this.#normal.size === 0 || this.#turns % turnsOfUrgent !== 0)
    return (isUrgentTurn ? this.#urgent : this.#normal).takeNext()
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

  constructor(turns: Turns<K>, ready: Queue.Queue<undefined>, timers: FiberMap.FiberMap<K>, startTimer: StartTimer<K>) {
    this.#lanes = new Lanes(turns)
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
export const makeKeySchedule = Effect.fnUntraced(function* <K extends string>(turns: Turns<K>): Effect.fn.Return<KeySchedule<K>, never, Scope.Scope> {
  const ready = yield* Queue.unbounded<undefined>()
  const timers = yield* FiberMap.make<K>()
  return new KeySchedule(turns, ready, timers, yield* FiberMap.runtime(timers)<never>())
})
