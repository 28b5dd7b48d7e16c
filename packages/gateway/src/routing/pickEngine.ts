import type { EngineState } from "./EngineState.ts"
import { scoreOf } from "./rendezvous.ts"

/**
 * Load above the mean that is acceptable to reach an engine with a warm cache: this many times the mean, or this many
 * requests more, but at most half of what an engine can process. At random, engines with few requests often differ by
 * more than a quarter, and computing a prompt again costs more than one more request in a batch.
 */
const [bound, most] = [1.25, 4]

export interface Pick {
  readonly now: number
  /** Requests that an engine may get at once. */
  readonly limit: number
  /** Requests that an engine can process at once, as measured. */
  readonly concurrency: number
  /** Hash of the prefix that the request shares with others; null if there is none. */
  readonly key: number | null
  /** Engines that already had this request. */
  readonly except: ReadonlyArray<EngineState>
}

const hasRoom = (engine: EngineState, { except, limit, now }: Pick): boolean =>
  !engine.isEjected(now) && !engine.isFull(now) && engine.outstanding < engine.allowed(limit, now) && !except.includes(engine)

const leastLoaded = (engines: ReadonlyArray<EngineState>, now: number): EngineState | undefined => {
  let least: EngineState | undefined
  for (const engine of engines) if (least === undefined || engine.load(now) < least.load(now)) least = engine
  return least
}

/** The first engine in the order of the key that may take one more request. */
const firstWithin = (engines: ReadonlyArray<EngineState>, key: number, mayTake: (engine: EngineState) => boolean): EngineState | undefined => {
  let best: EngineState | undefined
  let bestScore = -1
  for (const engine of engines) {
    const score = scoreOf(key, engine.hash)
    if (score > bestScore && mayTake(engine)) {
      best = engine
      bestScore = score
    }
  }
  return best
}

/**
 * Picks the engine for a request, by rendezvous hashing with bounded loads: the first engine in the order of the key
 * whose load stays within the bound. Without a key, the engine with the least load. Undefined if no engine
 * has room. The mean covers the engines with room, includes the request itself and is rounded up, so at least one
 * engine is within the bound.
 */
export const pickEngine = (engines: ReadonlyArray<EngineState>, pick: Pick): EngineState | undefined => {
  const { key, now } = pick
  const roomy: Array<EngineState> = []
  let total = 0
  for (const engine of engines) {
    if (!hasRoom(engine, pick)) continue
    roomy.push(engine)
    total += engine.load(now)
  }
  const mean = (total + 1) / roomy.length
  const strict = Math.ceil(bound * mean)
  // Never more than it can process at once, while others have room.
  const loose = Math.max(strict, Math.min(pick.concurrency, Math.ceil(mean + Math.min(most, pick.concurrency / 2))))
  // What other gateways send shows only in the engine's own report.
  const mayTake = (engine: EngineState) => engine.load(now) + 1 <= (engine.reportedRunning(now) < pick.concurrency ? loose : strict)
  return (roomy.length > 1 && key !== null ? firstWithin(roomy, key, mayTake) : undefined) ?? leastLoaded(roomy, now)
}
