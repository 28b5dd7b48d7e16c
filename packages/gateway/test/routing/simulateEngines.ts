import type { EngineState } from "../../src/routing/EngineState.ts"

/** Chooses an engine for a request with this hash of its prefix; undefined if none has room. */
export type Choose = (engines: ReadonlyArray<EngineState>, key: number, now: number, random: () => number) => EngineState | undefined

export interface SimulatedLoad {
  readonly sessions: number
  /** Requests of one session. */
  readonly turns: number
  /** Requests a second. */
  readonly rate: number
  /** Prefixes that one engine's cache holds. */
  readonly cached: number
  /** Seconds that an engine computes a prompt whose prefix its cache holds, any other prompt, and an answer. */
  readonly seconds: { readonly hit: number; readonly miss: number; readonly answer: number }
  /** How many times as long each engine takes. */
  readonly slowness: ReadonlyArray<number>
}

export interface SimulatedResult {
  /** Share of the requests whose prefix was in the cache of their engine. The first request of a session cannot be. */
  readonly hits: number
  /** Seconds from arrival to the end of the answer. */
  readonly p50: number
  readonly p99: number
  /** The share of the requests that each engine got. */
  readonly shares: ReadonlyArray<number>
}

/** Mulberry32. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A prefix cache that forgets the prefix that was used the longest time ago. */
class PrefixCache {
  readonly #size: number
  readonly #keys = new Set<number>()

  constructor(size: number) {
    this.#size = size
  }

  /** Whether it holds the prefix. It does from now on. */
  use(key: number): boolean {
    const isHit = this.#keys.delete(key)
    this.#keys.add(key)
    for (const oldest of this.#keys) {
      if (this.#keys.size <= this.#size) break
      this.#keys.delete(oldest)
    }
    return isHit
  }
}

interface Arrival {
  readonly at: number
  readonly key: number
}

/** The requests of all sessions at random times. The sessions take turns, each with a prefix of its own. */
const arrivalsOf = ({ rate, sessions, turns }: SimulatedLoad, random: () => number): ReadonlyArray<Arrival> => {
  const keys = Array.from({ length: sessions }, () => Math.floor(random() * 2 ** 32))
  const ordered = keys.flatMap((key) => Array.from({ length: turns }, () => ({ key, rank: random() }))).sort((one, other) => one.rank - other.rank)
  let at = 0
  return ordered.map(({ key }) => {
    at += -Math.log(1 - random()) / rate
    return { at, key }
  })
}

interface Running {
  readonly until: number
  readonly engine: EngineState
}

/**
 * Plays requests against simulated engines, of which only the time per request and the prefix cache are modeled. The
 * choice of the engine is the program's own code.
 */
export const simulate = (load: SimulatedLoad, engines: ReadonlyArray<EngineState>, choose: Choose, seed: number): SimulatedResult => {
  const random = randomFrom(seed)
  const caches = engines.map(() => new PrefixCache(load.cached))
  const counts = engines.map(() => 0)
  const times: Array<number> = []
  const running: Array<Running> = []
  const queue: Array<Arrival> = []
  let hits = 0
  const begin = ({ at, key }: Arrival, now: number): boolean => {
    const engine = choose(engines, key, now * 1_000, random)
    if (engine === undefined) return false
    const index = engines.indexOf(engine)
    const isHit = caches[index]?.use(key) === true
    const { answer, hit, miss } = load.seconds
    const until = now + ((isHit ? hit : miss) + answer) * (load.slowness[index] ?? 1)
    engine.enter(now * 1_000, true, "org")
    counts[index] = (counts[index] ?? 0) + 1
    hits += isHit ? 1 : 0
    times.push(until - at)
    running.splice(running.findLastIndex((each) => each.until <= until) + 1, 0, { until, engine })
    return true
  }
  const endUntil = (now: number) => {
    while (running[0] !== undefined && running[0].until <= now) {
      const { engine, until } = running[0]
      running.shift()
      engine.leave(true, "org")
      while (queue[0] !== undefined && begin(queue[0], until)) queue.shift()
    }
  }
  for (const arrival of arrivalsOf(load, random)) {
    endUntil(arrival.at)
    if (queue.length > 0 || !begin(arrival, arrival.at)) queue.push(arrival)
  }
  endUntil(Number.POSITIVE_INFINITY)
  const sorted = times.toSorted((one, other) => one - other)
  const quantile = (part: number) => sorted[Math.floor(part * (sorted.length - 1))] ?? 0
  return { hits: hits / times.length, p50: quantile(0.5), p99: quantile(0.99), shares: counts.map((count) => count / times.length) }
}
