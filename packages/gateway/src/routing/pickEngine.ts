import type { EngineState } from "./EngineState.ts"
import { scoreOf } from "./rendezvous.ts"

/** By how much an engine's load may pass the mean for the sake of what its cache may hold. */
const bound = 1.25

export interface Pick {
  readonly now: number
  /** What an engine can work on at once. */
  readonly limit: number
  /** Hash of what the request shares with others; null: nothing. */
  readonly key: number | null
  /** Engines that were asked already. */
  readonly except: ReadonlyArray<EngineState>
}

/**
 * The engine for a request: the first in the order of its key (rendezvous hashing) whose load stays within 1.25 times the mean, and without a key the one with the least load.
 * Undefined where none has room. The mean is of those that have room, the request itself included and rounded up, so that there always is one within it.
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
