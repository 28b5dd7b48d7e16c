import { assert, it } from "@effect/vitest"
import { addProbe, alarmLevel, divide, noEvidence, scoreOfDistance } from "../../src/sentinel/evidence.ts"
import { random } from "../decide/world.ts"

const probesPerDay = 1_440
/** How far each text is away compared with the mean, measured with two computations in 16 bits (docs/explanation/trial.md). */
const texts = [1, 0.94, 1.18, 1.23, 0.65]

/** The mean distance of two computations in 16 bits if their rounding is independent, nats. Measured: 0.037. */
const independent = 0.054

/**
 * A healthy engine for a day: its distance from the trial alone, and among other requests, which other kernels may compute.
 * Among others, half of the engines are as far away as two independent computations.
 */
const makeEngine = (draw: () => number) => {
  const alone = draw() * independent
  const busy = draw() < 0.5 ? independent : draw() * independent
  const [busyShare, first] = [draw(), Math.floor(draw() * texts.length)]
  return (probe: number): number => {
    // Something else disturbs one probe in a thousand, however much.
    if (draw() < 0.001) return draw()
    const ofText = (draw() < busyShare ? busy : alone) * (texts[(probe + first) % texts.length] ?? 1)
    return ofText * (1 + (draw() + draw() + draw() - 1.5) * 0.4)
  }
}

it("replaces no engine in 10,000 simulated engine-days without a fault", { timeout: 240_000 }, () => {
  const seed = Number(process.env.SEATRIAL_SENTINEL_SEED ?? 1)
  const days = Number(process.env.SEATRIAL_SENTINEL_DAYS ?? 10_000)
  const draw = random(seed)
  const level = alarmLevel(1e-6, 60_000)
  let [alarms, most] = [0, 0]
  for (let day = 0; day < days; day++) {
    const distance = makeEngine(draw)
    let evidence = divide(noEvidence(0), texts.length)
    for (let probe = 0; probe < probesPerDay; probe++) {
      evidence = addProbe(evidence, scoreOfDistance(distance(probe)), probe)
      if (evidence.total > most) most = evidence.total
      if (evidence.total >= level) {
        alarms++
        evidence = divide(noEvidence(0), texts.length)
      }
    }
  }
  process.stdout.write(`${days} engine-days, seed ${seed}: ${alarms} alarms, largest evidence ${most.toExponential(2)} of ${level.toExponential(2)}\n`)
  assert.strictEqual(alarms, 0)
})
