import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { desiredReplicas } from "../../src/decide/desiredReplicas.ts"
import { random } from "../decide/world.ts"
import { anyHistory, shapes } from "./loads.ts"
import { brokenPromises, engineSeconds } from "./promises.ts"
import { oracleSeconds, simulate } from "./simulate.ts"
import { wrongAutoscalers } from "./wrongAutoscalers.ts"

const count = Number(process.env.SEATRIAL_SCALING_HISTORIES ?? 100)
const first = Number(process.env.SEATRIAL_SCALING_SEED ?? 1)
const target = 0.8

const historyOf = (seed: number) => anyHistory(random(seed), shapes[seed % shapes.length] ?? "step")
const seeds = Array.from({ length: count }, (_, index) => first + index)

describe("the autoscaler in simulation", () => {
  it.live(
    `keeps its promises in ${count} histories from seed ${first}`,
    () =>
      Effect.gen(function* () {
        const broken: Array<string> = []
        const figures = new Map<string, { used: number; oracle: number; atCapacity: number; worst: number }>()
        for (const seed of seeds) {
          const history = historyOf(seed)
          const outcome = simulate(history, target, desiredReplicas)
          for (const name of brokenPromises(history, outcome, target)) broken.push(`seed ${seed} (${history.shape}): ${name}`)
          const [used, oracle, atCapacity] = [engineSeconds(outcome), oracleSeconds(history, target), oracleSeconds(history, 1)]
          const sum = figures.get(history.shape) ?? { used: 0, oracle: 0, atCapacity: 0, worst: 0 }
          figures.set(history.shape, {
            used: sum.used + used,
            oracle: sum.oracle + oracle,
            atCapacity: sum.atCapacity + atCapacity,
            worst: Math.max(sum.worst, used / oracle)
          })
        }
        for (const [shape, { atCapacity, oracle, used, worst }] of figures) {
          const [ratio, fullRatio, worstRatio] = [used / oracle, used / atCapacity, worst].map((value) => value.toFixed(3))
          if (used > 1.2 * oracle) broken.push(`${shape}: more than 20% above the oracle in all histories`)
          yield* Effect.logInfo(`${shape}: ${ratio} of the oracle's engine-hours, at worst ${worstRatio}; ${fullRatio} of an oracle without target`)
        }
        assert.deepStrictEqual(broken, [])
      }),
    3_600_000
  )

  for (const [what, { autoscaler, breaks }] of Object.entries(wrongAutoscalers)) {
    it(`detects an autoscaler that ${what}`, () => {
      const isDetected = (seed: number) => brokenPromises(historyOf(seed), simulate(historyOf(seed), target, autoscaler), target).includes(breaks)
      assert.isTrue(Array.from({ length: 100 }, (_, index) => 1 + index).some(isDetected), breaks)
    })
  }
})
