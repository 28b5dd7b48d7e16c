import { assert, it } from "@effect/vitest"
import { addProbe, alarmLevel, noEvidence, scoreOfDistance } from "../../src/sentinel/evidence.ts"
import { random } from "../decide/world.ts"

const probesPerDay = 1_440

/**
 * The distance of a healthy engine. `rounding`: its mean. The distance depends on the text, and something else disturbs
 * one probe in a thousand.
 */
const distance = (draw: () => number, rounding: number, text: number): number => {
  const ofText = rounding * (0.6 + 0.2 * text)
  const noise = (draw() + draw() + draw() - 1.5) * 0.1 * rounding
  return draw() < 0.001 ? 0.25 : ofText + noise
}

it("replaces no engine in 10,000 simulated engine-days without a fault", { timeout: 120_000 }, () => {
  const seed = Number(process.env.SEATRIAL_SENTINEL_SEED ?? 1)
  const days = Number(process.env.SEATRIAL_SENTINEL_DAYS ?? 10_000)
  const draw = random(seed)
  const level = alarmLevel(1e-6, 60_000)
  let [alarms, most] = [0, 0]
  for (let day = 0; day < days; day++) {
    const rounding = draw() * 0.049
    let evidence = noEvidence
    for (let probe = 0; probe < probesPerDay; probe++) {
      evidence = addProbe(evidence, scoreOfDistance(distance(draw, rounding, probe % 5)))
      if (evidence.total > most) most = evidence.total
      if (evidence.total >= level) {
        alarms++
        evidence = noEvidence
      }
    }
  }
  process.stdout.write(`${days} engine-days, seed ${seed}: ${alarms} alarms, largest evidence ${most.toExponential(2)} of ${level.toExponential(2)}\n`)
  assert.strictEqual(alarms, 0)
})
