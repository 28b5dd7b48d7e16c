import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { desiredReplicas, type ScalingHistory } from "../../src/decide/desiredReplicas.ts"
import { addSample, type LoadSample } from "../../src/observation/ObservedLoad.ts"
import { random } from "../decide/world.ts"

const minute = 60_000
const now = 100 * minute
const curve = { capacity: 10, startMillis: minute }
const settings = { minReplicas: 1, maxReplicas: 8, target: 0.8 }
/** Two engines for a long time, and a constant load. */
const history = (requests: number, change: Partial<ScalingHistory> = {}): ScalingHistory => ({
  replicas: 2,
  changedAt: 0,
  since: 0,
  samples: [{ at: now, requests }],
  ...change
})
const earlier = (at: number, requests: number): LoadSample => ({ at: now - at, requests })

const table: ReadonlyArray<
  readonly [why: string, history: ScalingHistory, replicas: number, settings?: Partial<typeof settings>, startMillis?: number | null]
> = [
  ["two engines process their capacity", history(20), 2],
  ["one request more needs engines for the target, in one step", history(21), 3],
  ["a high load needs many, in one step", history(60), 8],
  ["no more than the maximum", history(500), 8],
  ["a smaller target needs more engines", history(20), 4, { target: 0.5 }],
  ["a smaller target has the same tolerance", history(12), 2, { target: 0.5 }],
  ["at a target of 1, the capacity is used", history(21), 3, { target: 1 }],
  ["engines that are starting count", history(40, { replicas: 5, changedAt: now - 1_000 }), 5],
  ["one engine is enough", history(8), 1],
  ["one engine would have no reserve", history(9), 2],
  ["one fewer at a time", history(0, { replicas: 6 }), 5],
  ["the highest load of the window decides", history(0, { samples: [earlier(2 * minute, 9), earlier(0, 0)] }), 2],
  ["a load before the window is ignored", history(0, { samples: [earlier(4 * minute, 9), earlier(0, 0)] }), 1],
  ["the window is as long as a start", history(0, { samples: [earlier(4 * minute, 9), earlier(0, 0)] }), 2, {}, 5 * minute],
  ["an unknown start does not change the window", history(0), 1, {}, null],
  ["no engine is stopped before the load was observed for a window", history(0, { since: now - minute }), 2],
  ["no engine is stopped right after another one", history(0, { replicas: 3, changedAt: now - 10_000 }), 3],
  ["without any load, the minimum stays", history(0), 2, { minReplicas: 2 }],
  ["a raised minimum applies at once", history(0), 4, { minReplicas: 4 }],
  ["a lowered maximum applies at once", history(60, { replicas: 8 }), 3, { maxReplicas: 3 }],
  ["a minimum of 0 leaves one engine, which may idle", history(0, { replicas: 1 }), 1, { minReplicas: 0 }],
  ["without a sample, nothing changes", history(0, { samples: [], since: now }), 2]
]

describe("the desired number of engines", () => {
  for (const [why, observed, replicas, changed = {}, startMillis = curve.startMillis] of table) {
    it(why, () => {
      assert.strictEqual(desiredReplicas(observed, { ...curve, startMillis }, { ...settings, ...changed }, now).replicas, replicas)
    })
  }

  it.prop(
    "is within the limits, falls by at most one, and never falls if the load rises",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      for (let count = 0; count < 50; count++) {
        const minReplicas = Math.floor(draw() * 4)
        const limits = { minReplicas, maxReplicas: minReplicas + 1 + Math.floor(draw() * 8), target: 0.1 + 0.9 * draw() }
        const engine = { capacity: 1 + Math.floor(draw() * 40), startMillis: draw() < 0.2 ? null : Math.floor(draw() * 20 * minute) }
        const replicas = Math.max(1, minReplicas) + Math.floor(draw() * (limits.maxReplicas - Math.max(1, minReplicas) + 1))
        const requests = Math.floor(draw() * 400)
        const observed = history(requests, { replicas, changedAt: now - Math.floor(draw() * minute), since: now - Math.floor(draw() * 40 * minute) })
        const desired = desiredReplicas(observed, engine, limits, now).replicas
        const withMore = desiredReplicas({ ...observed, samples: [{ at: now, requests: requests + 1 }] }, engine, limits, now).replicas
        assert.isAtLeast(desired, Math.max(1, minReplicas, replicas - 1), `seed ${seed}`)
        assert.isAtMost(desired, limits.maxReplicas, `seed ${seed}`)
        assert.isAtLeast(withMore, desired, `seed ${seed}`)
      }
    },
    { arbitrary: { runs: 100 } }
  )

  it.prop(
    "is the same if samples are removed that a newer one is not below",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      let [all, few]: ReadonlyArray<ReadonlyArray<LoadSample>> = [[], []]
      for (let at = now - 60 * minute; at <= now; at += minute / 2) {
        const sample = { at, requests: Math.floor(draw() * 40) }
        all = [...(all ?? []), sample]
        few = addSample(few ?? [], sample)
        const engine = { capacity: 10, startMillis: 20 * minute }
        assert.deepStrictEqual(
          desiredReplicas(history(0, { samples: few, replicas: 4 }), engine, settings, at),
          desiredReplicas(history(0, { samples: all, replicas: 4 }), engine, settings, at),
          `seed ${seed}`
        )
      }
    },
    { arbitrary: { runs: 20 } }
  )
})
