import { assert, describe, it } from "@effect/vitest"
import { EngineState } from "../../src/routing/EngineState.ts"
import { pickEngine } from "../../src/routing/pickEngine.ts"
import { type Choose, type SimulatedLoad, simulate } from "./simulateEngines.ts"

const seed = Number(process.env.AFFINITY_SEED ?? 1)
const limit = 16

const byPrefix: Choose = (engines, key, now) => pickEngine(engines, { now, limit, concurrency: limit, key, except: [] })
const byLoad: Choose = (engines, _, now) => pickEngine(engines, { now, limit, concurrency: limit, key: null, except: [] })
const atRandom: Choose = (engines, _, now, random) => {
  const roomy = engines.filter((engine) => engine.outstanding < engine.allowed(limit, now))
  return roomy[Math.floor(random() * roomy.length)]
}

/** Four engines that use about two thirds of their places. Together, their caches hold four fifths of the sessions. */
const load: SimulatedLoad = {
  sessions: 1_000,
  turns: 8,
  rate: 14,
  cached: 200,
  seconds: { hit: 0.2, miss: 1, answer: 2 },
  slowness: [1, 1, 1, 1]
}

const play = (choose: Choose, over: Partial<SimulatedLoad> = {}) => {
  const engines = load.slowness.map((_, index) => new EngineState({ url: `http://engine-${index}:8000`, pod: `engine-${index}` }, 0, false))
  return simulate({ ...load, ...over }, engines, choose, seed)
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`

describe("requests over four simulated engines", () => {
  it("reach a warm prefix cache at least twice as often as at random", () => {
    const results = { prefix: play(byPrefix), load: play(byLoad), random: play(atRandom) }
    for (const [name, { hits, p50, p99 }] of Object.entries(results))
      process.stdout.write(`by ${name}: ${percent(hits)} hits, p50 ${p50.toFixed(2)} s, p99 ${p99.toFixed(2)} s (seed ${seed})\n`)
    assert.isAbove(results.prefix.hits, 2 * results.random.hits)
    assert.isAtMost(results.prefix.p99, results.random.p99)
  })

  it("leave an engine that takes three times as long with less than two thirds of its share", () => {
    const { shares } = play(byPrefix, { slowness: [1, 1, 1, 3], rate: 9 })
    process.stdout.write(`shares: ${shares.map(percent).join(", ")}\n`)
    assert.isBelow(shares[3] ?? 1, 1 / 6)
  })
})
