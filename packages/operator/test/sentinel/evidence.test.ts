import { assert, describe, it } from "@effect/vitest"
import { addProbe, alarmLevel, type Evidence, isDoubtful, noEvidence, scoreOfDistance } from "../../src/sentinel/evidence.ts"
import { random } from "../decide/world.ts"

const level = alarmLevel(1e-6, 60_000)

const after = (probes: number, nats: number, from: Evidence = noEvidence): Evidence => {
  let evidence = from
  for (let probe = 0; probe < probes; probe++) evidence = addProbe(evidence, scoreOfDistance(nats))
  return evidence
}

/** Probes from the begin of a fault to its alarm; null if there is none within 10,000. */
const delay = (nats: number, healthyProbes: number): number | null => {
  let evidence = after(healthyProbes, 0)
  for (let probe = 1; probe <= 10_000; probe++) {
    evidence = addProbe(evidence, scoreOfDistance(nats))
    if (evidence.total >= level) return probe
  }
  return null
}

describe("the evidence that an engine differs from its trial", () => {
  // The table of references in docs/explanation/trial.md has these distances.
  const cases: ReadonlyArray<readonly [what: string, nats: number, probes: number | null]> = [
    ["values that are no numbers", Number.NaN, 21],
    ["the last MLP halved (0.73 nats)", 0.73, 21],
    ["a tenth of the last MLP's channels swapped (0.66 nats)", 0.66, 21],
    ["two heads of Q swapped in a middle layer (0.177 nats)", 0.177, 27],
    ["weights rounded to 8-bit floats (0.154 nats)", 0.154, 30],
    ["the last MLP at 0.9 of its size (0.126 nats)", 0.126, 37],
    ["two heads of Q swapped in the first layer (0.095 nats)", 0.095, 53],
    ["noise of 1% on all matrices (0.06 nats)", 0.06, 186],
    ["16-bit rounding (0.05 nats)", 0.05, null],
    ["the same numbers", 0, null]
  ]
  for (const [what, nats, probes] of cases)
    it(`${probes === null ? "never raises an alarm for" : `raises an alarm after ${probes} probes for`} ${what}`, () =>
      assert.strictEqual(delay(nats, 1_000), probes))

  it("needs as many probes after a year of health as after an hour", () => assert.strictEqual(delay(0.2, 525_960), delay(0.2, 60)))

  it("has its begin at the last probe without evidence", () => {
    assert.isFalse(isDoubtful(noEvidence))
    assert.isTrue(isDoubtful(after(1, 0.2)))
    assert.isFalse(isDoubtful(after(3, 0, after(1, 0.2))))
  })

  it("stays a number if an engine goes on without being replaced", () => {
    const { recent, total } = after(2_000, 1)
    assert.isTrue(Number.isFinite(recent) && Number.isFinite(total))
  })

  it("grows by at most one a probe in the mean, however the scores of a healthy engine are distributed", () => {
    const [seed, engines, probes] = [7, 4_000, 50]
    const draw = random(seed)
    const shapes: ReadonlyArray<() => number> = [() => 0.2, () => (draw() < 0.2 ? 1 : 0), () => draw() * 0.4, () => draw() ** 4]
    for (const [shape, score] of shapes.entries()) {
      let reached = 0
      for (let engine = 0; engine < engines; engine++) {
        let evidence = noEvidence
        let most = 0
        for (let probe = 0; probe < probes; probe++) {
          evidence = addProbe(evidence, score())
          most = Math.max(most, evidence.total)
        }
        if (most >= probes * 100) reached++
      }
      // The bound is one in a hundred engines.
      assert.isAtMost(reached, (engines / 100) * 1.3, `shape ${shape}, seed ${seed}`)
    }
  })
})
