import { assert, describe, it } from "@effect/vitest"
import { addProbe, alarmLevel, type DividedEvidence, divide, isDoubtful, noEvidence, scoreOfDistance } from "../../src/sentinel/evidence.ts"
import { random } from "../decide/world.ts"

const level = alarmLevel(1e-6, 60_000)
const start = divide(noEvidence(0), 5)

/** The mean difference of each of the five texts, nats. */
type Distances = ReadonlyArray<number>
const everyText = (nats: number): Distances => Array.from({ length: 5 }, () => nats)
/** Texts beyond these show nothing. */
const only = (...nats: ReadonlyArray<number>): Distances => [...nats, 0, 0, 0, 0, 0].slice(0, 5)
const healthy = everyText(0)

/** The time of a probe is its number. */
const next = (evidence: DividedEvidence, distances: Distances): DividedEvidence =>
  addProbe(evidence, scoreOfDistance(distances[evidence.probes % 5] ?? 0), evidence.probes + 1)

const after = (probes: number, distances: Distances, from: DividedEvidence = start): DividedEvidence => {
  let evidence = from
  for (let probe = 0; probe < probes; probe++) evidence = next(evidence, distances)
  return evidence
}

/** Probes until the alarm; null if there is none within 10,000. */
const delayFrom = (from: DividedEvidence, distances: Distances): number | null => {
  let evidence = from
  for (let probe = 1; probe <= 10_000; probe++) {
    evidence = next(evidence, distances)
    if (evidence.total >= level) return probe
  }
  return null
}

/** The same from the begin of a fault on, after healthy probes. */
const delay = (distances: Distances, healthyProbes = 1_000): number | null => delayFrom(after(healthyProbes, healthy), distances)

/** The most probes until the alarm, if the first probe of the fault may have any text. */
const longestDelay = (distances: Distances): number | null => {
  const delays = distances.map((_, text) => delay(distances, 1_000 + text))
  return delays.reduce((most, each) => (most === null || each === null ? null : Math.max(most, each)))
}

describe("the evidence that an engine differs from its trial", () => {
  // Measured with SmolLM2-135M in 16 bits; the table in docs/explanation/trial.md.
  const cases: ReadonlyArray<readonly [what: string, distances: Distances, probes: number | null]> = [
    ["values that are no numbers", everyText(Number.NaN), 21],
    ["the last MLP halved", [0.708, 0.674, 0.659, 0.585, 0.315], 22],
    ["a tenth of the last MLP's channels swapped", [0.337, 0.348, 0.34, 0.291, 0.106], 28],
    ["two heads of Q swapped in a middle layer", [0.155, 0.149, 0.174, 0.171, 0.069], 58],
    ["a tenth of a middle MLP's channels swapped", [0.148, 0.121, 0.136, 0.18, 0.063], 70],
    ["the last MLP at 0.9 of its size", [0.139, 0.139, 0.135, 0.113, 0.076], 78],
    ["noise of 2% on all matrices", [0.126, 0.119, 0.151, 0.125, 0.067], 83],
    ["two heads of Q swapped in the first layer", [0.104, 0.111, 0.117, 0.119, 0.097], 93],
    ["weights rounded to 8-bit floats", [0.1175, 0.1163, 0.1275, 0.1176, 0.0505], 115],
    ["two heads of Q swapped in the last layer", [0.0707, 0.0708, 0.0812, 0.076, 0.0383], 2_140],
    ["noise of 1% on all matrices", [0.0706, 0.0645, 0.0805, 0.0714, 0.0406], 2_395],
    ["weights rounded to 8-bit integers", [0.064, 0.06, 0.065, 0.067, 0.036], null],
    ["two computations in 16 bits", [0.037, 0.034, 0.043, 0.045, 0.024], null],
    ["two computations in 16 bits with independent rounding", everyText(0.067), null],
    ["the same numbers", healthy, null]
  ]
  for (const [what, distances, probes] of cases)
    it(`${probes === null ? "never raises an alarm for" : `raises an alarm after ${probes} probes at most for`} ${what}`, () =>
      assert.strictEqual(longestDelay(distances), probes))

  it("is not hidden by the texts that do not show the fault", () => {
    for (const distances of [only(1), only(1, 1), [0, 1, 0, 1, 0]]) assert.isAtMost(longestDelay(distances) ?? Number.POSITIVE_INFINITY, 105)
    assert.strictEqual(longestDelay(only(0.15)), 250)
  })

  it("needs as many probes after a year of health as after an hour", () => {
    for (const distances of [everyText(0.2), only(0.2)]) assert.strictEqual(delay(distances, 525_960), delay(distances, 60))
  })

  it("is lost for a few probes if another leader goes on with it", () => {
    for (const [distances, probes, lost] of [
      [everyText(1), 15, 1],
      [only(1), 60, 10]
    ] as const) {
      const before = after(probes, distances)
      const again = delayFrom(divide(before, 5), distances) ?? Number.POSITIVE_INFINITY
      const same = delayFrom(before, distances) ?? 0
      assert.isAtLeast(again, same)
      assert.isAtMost(again, same + lost)
    }
  })

  it("begins at the last good probe of the texts that show it", () => {
    const good = after(1_000, healthy)
    assert.isFalse(isDoubtful(start))
    assert.deepStrictEqual([isDoubtful(good), good.goodAt, good.goodProbes], [false, 1_000, 1_000])
    // The first text was good at the 996th probe, and the third one at the 998th.
    for (const [distances, probes] of [
      [everyText(1), 996],
      [only(1), 996],
      [[0, 0, 1, 0, 0], 998]
    ] as const) {
      const { goodAt, goodProbes, recent } = after(20, distances, good)
      assert.deepStrictEqual([isDoubtful({ recent }), goodAt, goodProbes], [true, probes, probes])
    }
    // Its next good probes end the doubt.
    const single = after(1, only(1), good)
    assert.deepStrictEqual(
      [4, 5, 10].map((probes) => isDoubtful(after(probes, healthy, single))),
      [true, false, false]
    )
  })

  it("stays a number if an engine goes on without being replaced", () => {
    const { recent, total } = after(2_000, everyText(1))
    assert.isTrue(Number.isFinite(recent) && Number.isFinite(total))
  })

  it("grows by at most one a probe in the mean, however the scores of a healthy engine are distributed", () => {
    const [seed, engines, probes] = [7, 4_000, 50]
    const draw = random(seed)
    const shapes: ReadonlyArray<(probe: number) => number> = [
      () => 0.2,
      () => (draw() < 0.2 ? 1 : 0),
      () => draw() * 0.4,
      () => draw() ** 4,
      (probe) => (probe % 5 === 0 ? (draw() < 0.2 ? 1 : 0) : 0)
    ]
    for (const [shape, score] of shapes.entries()) {
      let reached = 0
      for (let engine = 0; engine < engines; engine++) {
        let evidence = start
        let most = 0
        for (let probe = 0; probe < probes; probe++) {
          // Another leader goes on in the middle.
          evidence = addProbe(probe === probes / 2 ? divide(evidence, 5) : evidence, score(probe), probe)
          most = Math.max(most, evidence.total)
        }
        if (most >= probes * 100) reached++
      }
      // The bound is one in a hundred engines.
      assert.isAtMost(reached, (engines / 100) * 1.3, `shape ${shape}, seed ${seed}`)
    }
  })
})
