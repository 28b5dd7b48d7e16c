import { assert, describe, it } from "@effect/vitest"
import { isAtMaximum, needsScaling } from "../../src/decide/autoscale.ts"
import { makeModelLoads } from "../../src/gather/ModelLoads.ts"
import { measured, revision, run } from "../observations.ts"

const minute = 60_000
/** A model that serves with one engine, which processes 4 requests at once. */
const serving = {
  ...run,
  phase: "activated" as const,
  revision: { ...revision, status: "active" as const, measured },
  replicas: 1,
  scaling: { minReplicas: 1, maxReplicas: 4, target: 0.8 }
}
/** `oldestReport`, `newestReport`: when the gateways with requests wrote last. One gateway has both. */
const report = (requests: number | null, replicas = 1, [oldestReport, newestReport] = [0, 0]) => [
  { run: run.id, modelId: run.modelId, replicas, requests, oldestReport, newestReport }
]

describe("the loads of models", () => {
  it("request the first pass over a model, and then one whenever its number of engines must change", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    assert.deepStrictEqual(loads.add(report(2), 0), [run.id])
    assert.deepStrictEqual(loads.of(serving, 0), { changedAt: 0, since: 0, samples: [{ at: 0, requests: 2 }] })
    assert.deepStrictEqual(loads.add(report(4), 2_000), [])
    assert.deepStrictEqual(loads.add(report(5), 4_000), [run.id])
  })

  it("request a pass when the load needs more engines than the autoscaler may set, and a window after it does not any more", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    const most = { ...serving, replicas: 4 }
    loads.add(report(16, 4), 0)
    loads.of(most, 0)
    assert.isFalse(isAtMaximum(most, loads.of(most, 0), 0))
    assert.deepStrictEqual(loads.add(report(17, 4), 2_000), [run.id])
    assert.isTrue(isAtMaximum(most, loads.of(most, 2_000), 2_000))
    assert.deepStrictEqual(loads.add(report(30, 4), 4_000), [])
    const due = Array.from({ length: 100 }, (_, index) => 6_000 + index * 2_000).filter((at) => loads.add(report(13, 4), at).length > 0)
    assert.strictEqual(due[0], 4_000 + 3 * minute + 2_000)
  })

  it("know when the number changed, before and after it is reported", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    loads.add(report(2), 0)
    loads.of(serving, 0)
    assert.strictEqual(loads.of({ ...serving, replicas: 2 }, 1_000)?.changedAt, 1_000)
    loads.add(report(2, 2), 2_000)
    assert.strictEqual(loads.of({ ...serving, replicas: 2 }, 3_000)?.changedAt, 1_000)
    loads.add(report(2, 3), 4_000)
    assert.strictEqual(loads.of({ ...serving, replicas: 3 }, 5_000)?.changedAt, 4_000)
  })

  it("begin again after a gap, so that no engine is stopped because nothing was reported", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    for (let at = 0; at <= 10 * minute; at += 10_000) loads.add(report(0, 2), at)
    loads.of({ ...serving, replicas: 2 }, 10 * minute)
    loads.add(report(null, 2), 10 * minute + 2_000)
    assert.strictEqual(loads.of({ ...serving, replicas: 2 }, 10 * minute + 2_000)?.since, 0)
    assert.deepStrictEqual(loads.add(report(0, 2), 11 * minute), [])
    assert.deepStrictEqual(loads.of({ ...serving, replicas: 2 }, 11 * minute), {
      changedAt: 0,
      since: 11 * minute,
      samples: [{ at: 11 * minute, requests: 0 }]
    })
  })

  it("count a rise once every gateway with requests has written since, so that requests of a dead gateway do not count twice", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    let at = 0
    const read = (requests: number, reports: readonly [oldest: number, newest: number]) => {
      at += 1_000
      const isDue = loads.add(report(requests, 1, [...reports]), at).length > 0
      return [loads.of(serving, at)?.samples.at(-1)?.requests, isDue]
    }
    assert.deepStrictEqual(read(3, [100, 900]), [undefined, true])
    assert.deepStrictEqual(read(3, [1_100, 1_900]), [3, false])
    // A gateway with two requests dies after its report at 1,950. The other one gets them.
    for (const newest of [2_900, 3_900, 4_900]) assert.deepStrictEqual(read(5, [1_950, newest]), [3, false])
    assert.deepStrictEqual(read(3, [5_900, 5_900]), [3, false])
    // A real rise counts after the next report of each gateway, with the lowest number since.
    assert.deepStrictEqual(read(7, [6_100, 6_900]), [3, false])
    assert.deepStrictEqual(read(6, [7_100, 7_900]), [6, true])
    assert.deepStrictEqual(read(2, [8_100, 8_900]), [2, false])
  })

  it("are forgotten if the autoscaler does not set the number any more", () => {
    const loads = makeModelLoads({ isAtMaximum, needsScaling })
    loads.add(report(2), 0)
    assert.isNull(loads.of({ ...serving, scaling: null }, 0))
    loads.add([], 2_000)
    assert.isFalse(loads.remembers(run.id))
  })
})
