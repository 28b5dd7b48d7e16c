import type { EngineState } from "./EngineState.ts"
import { scoreOf } from "./rendezvous.ts"

/** Load above the mean that is acceptable to reach an engine with a warm cache. */
const bound = 1.25

export interface Pick {
  readonly now: number
  /** Requests that an engine can process at once. */
  readonly limit: number
  /** Hash of the prefix that the request shares with others; null if there is none. */
  readonly key: number | null
  /** Engines that already had this request. */
  readonly except: ReadonlyArray<EngineState>
}

/**
 * Picks the engine for a request, by rendezvous hashing with bounded loads: the first engine in the order of the key
 * whose load stays within 1.25 times the mean. Without a key, the engine with the least load. Undefined if no engine
 * has room. The mean covers the engines with room, includes the request itself and is rounded up, so at least one
 * engine is within the bound.
 */
export const pickEngine = (engines: ReadonlyArray<EngineState>, { except, key, limit, now }: Pick): EngineState | undefined => {
  let count = 0
  let total = 0
  let least: EngineState | undefined
  const roomy: Array<EngineState> = []
  for (const engine of engines) {
    if (engine.isEjected(now) || engine.isFull(now) || engine.outstanding >= engine.allowed(limit, now) || except.includes(engine)) continue
    roomy.push(engine)
    const load = engine.load(now)
    count++
    total += load
    if (least === undefined || load < least.load(now)) least = engine
  }
  if (count < 2 || key === null) return least
  const most = Math.ceil((bound * (total + 1)) / count)
  let best: EngineState | undefined
  let bestScore = -1
  for (const engine of roomy) {
    const score = scoreOf(key, engine.hash)
    if (score > bestScore && engine.load(now) + 1 <= most) {
      best = engine
      bestScore = score
    }
  }
  return best ?? least
}
