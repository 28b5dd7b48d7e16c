import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { EngineState } from "../../src/routing/EngineState.ts"
import { pickEngine } from "../../src/routing/pickEngine.ts"
import { hashOf } from "../../src/routing/rendezvous.ts"
import { nameOf } from "./pool.ts"

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Engines with these numbers of requests. */
const enginesWith = (loads: ReadonlyArray<number>) =>
  loads.map((load, index) => {
    const engine = new EngineState({ url: `http://10.0.0.${index}:8000`, pod: `pod-${index}` }, 0, false)
    for (let count = 0; count < load; count++) engine.enter(0, true, "org")
    return engine
  })
const baseMetrics = { running: 1, waiting: 0, cacheUse: 0, tokens: null }
const at = { now: 0, limit: 20, concurrency: 16, except: [] }

describe("the engine for a request", () => {
  it.prop(
    "never has more than a quarter or four above the mean, nor more than it may, and there is one as long as one has room",
    [Schema.Array(int(0, 24)).check(Schema.isBetweenLength(1, 8)), Schema.Array(int(0, 9)).check(Schema.isMaxLength(8)), int(0, 2 ** 32 - 1)],
    ([loads, waiting, key]) => {
      const engines = enginesWith(loads)
      for (const [index, count] of waiting.entries()) engines[index]?.recordMetrics({ ...baseMetrics, waiting: count }, 0)
      const roomy = engines.filter((engine) => engine.outstanding < at.limit && !engine.isFull(0))
      const picked = pickEngine(engines, { ...at, key })
      if (picked === undefined) return roomy.length === 0
      const total = roomy.reduce((sum, engine) => sum + engine.load(0), 0)
      const mean = (total + 1) / roomy.length
      return roomy.includes(picked) && picked.load(0) + 1 <= Math.max(Math.ceil(1.25 * mean), Math.min(at.concurrency, Math.ceil(mean + 4)))
    }
  )

  it.prop(
    "is the same on every gateway, in whatever order it knows the engines",
    [Schema.Array(int(0, 3)).check(Schema.isBetweenLength(2, 8)), int(0, 2 ** 32 - 1)],
    ([loads, key]) => {
      const engines = enginesWith(loads)
      const picked = pickEngine(engines, { ...at, key })
      const other = pickEngine(enginesWith(loads).toReversed(), { ...at, key })
      return picked !== undefined && other !== undefined && nameOf(picked) === nameOf(other)
    }
  )

  it("gets an even share of the keys, and keeps them when another engine is removed", () => {
    const engines = enginesWith([0, 0, 0, 0, 0])
    const keys = Array.from({ length: 5_000 }, (_, index) => hashOf(`org\nmodel\nconversation ${index}`))
    const homes = (among: ReadonlyArray<EngineState>) => keys.map((key) => pickEngine(among, { ...at, key })?.endpoint.pod)
    const before = homes(engines)
    for (const { endpoint } of engines) assert.approximately(before.filter((pod) => pod === endpoint.pod).length, 1_000, 150)
    const after = homes(engines.slice(0, 4))
    assert.isTrue(before.every((pod, index) => pod === "pod-4" || pod === after[index]))
  })

  it("has no more than a quarter above the mean if it reports that it computes as much as it can", () => {
    const [first, second] = enginesWith([2, 0])
    const engines = [first, second].flatMap((engine) => engine ?? [])
    const warm = Array.from({ length: 64 }, (_, key) => key).find((key) => pickEngine(engines, { ...at, key }) === first)
    assert.isDefined(warm)
    first?.recordMetrics({ ...baseMetrics, running: 16 }, 0)
    assert.strictEqual(pickEngine(engines, { ...at, key: warm ?? null }), second)
  })

  it("has no more than it can process at once while another has room", () => {
    const [first, second] = enginesWith([0, 0])
    const engines = [first, second].flatMap((engine) => engine ?? [])
    const picked = Array.from({ length: 4 }, () => {
      const engine = pickEngine(engines, { ...at, limit: 6, concurrency: 2, key: 1 })
      engine?.enter(0, true, "org")
      return engine?.endpoint.pod
    })
    // The third would exceed what the warm engine can process at once.
    assert.deepStrictEqual(
      picked.map((pod) => pod === picked[0]),
      [true, true, false, true]
    )
  })

  it("is the one with the least load if the request shares no prefix", () => {
    const engines = enginesWith([3, 1, 2])
    assert.strictEqual(pickEngine(engines, { ...at, key: null }), engines[1])
    engines[1]?.recordMetrics({ ...baseMetrics, waiting: 5 }, 0)
    assert.strictEqual(pickEngine(engines, { ...at, key: null }), engines[2], "what waits there counts, too")
  })

  const vetoes: ReadonlyArray<readonly [string, Partial<typeof baseMetrics>, number, boolean]> = [
    ["that has a full cache", { cacheUse: 0.91 }, 0, true],
    ["that has a nearly full cache", { cacheUse: 0.9 }, 0, false],
    ["that has six waiting requests", { waiting: 6 }, 0, true],
    ["that has five waiting requests", { waiting: 5 }, 0, false],
    ["that reported it six seconds ago", { waiting: 6, cacheUse: 1 }, 6_000, false],
    ["that is idle", { running: 0, cacheUse: 1 }, 0, false]
  ]
  for (const [which, metrics, now, vetoed] of vetoes) {
    it(`is ${vetoed ? "never" : "also"} one ${which}`, () => {
      const [engine] = enginesWith([0])
      engine?.recordMetrics({ ...baseMetrics, ...metrics }, 0)
      assert.strictEqual(engine?.isFull(now), vetoed)
    })
  }

  it("is not one that was full a moment ago", () => {
    const [first, second] = enginesWith([0, 1])
    first?.markFull(0)
    const picked = (now: number) =>
      pickEngine(
        [first, second].flatMap((engine) => engine ?? []),
        { ...at, key: null, now }
      )
    assert.deepStrictEqual([picked(999), picked(1_000)], [second, first])
  })
})
