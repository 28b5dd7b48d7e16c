import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { calibrationOf, type Estimate, estimateFit, type FitInput } from "@seatrial/domain"
import { Schema } from "effect"
import { inputsOf } from "../load/fit/evaluate.ts"
import { ModelFacts, Start } from "../load/fit/Start.ts"

const gib = 2 ** 30
const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../load/fit", name), "utf8"))
const starts = Schema.decodeUnknownSync(Schema.Array(Start))(read("starts.json"))
const models = Schema.decodeUnknownSync(Schema.Record(Schema.String, ModelFacts))(read("models.json"))

interface Known {
  readonly id: string
  readonly input: FitInput
  readonly estimate: Estimate
  /** Bytes of the KV cache per GPU. */
  readonly measured: number
}

/** Starts with all inputs of an estimate and a reported KV cache. */
const known: ReadonlyArray<Known> = starts.flatMap((start) => {
  const facts = models[start.model]
  const inputs = facts === undefined ? [] : inputsOf(start, facts)
  const [only] = inputs
  if (only === undefined || inputs.length > 1 || typeof start.available_kv_gib !== "number" || start.available_kv_gib <= 0) return []
  const estimate = estimateFit(only.asked)
  return "fit" in estimate ? [{ id: start.id, input: only.asked, estimate, measured: start.available_kv_gib * gib }] : []
})

const learned = ({ estimate, input, measured }: Known) =>
  calibrationOf(
    {
      architecture: input.config.architecture,
      gpu_pool: input.hostClass.gpu_pool,
      gpu_count: input.hostClass.gpu_count,
      engine_version: input.engine.version,
      quantization: typeof input.engineFlags?.quantization === "string" ? input.engineFlags.quantization : input.config.quantization
    },
    { weightsBytes: estimate.fit.weights_bytes, components: estimate.components, measured: { kv_cache_bytes: measured } }
  )

describe("measured starts of real engines", () => {
  it("are numerous enough to prove something", () => assert.isAtLeast(known.length, 15))

  it("make the next estimate of the same start at most half as wide, and it still contains the measurement", () => {
    for (const start of known) {
      const calibration = learned(start)
      // A start far outside its estimate does not calibrate anything.
      if (calibration === null) {
        const { high, low } = start.estimate.components.pool
        assert.isTrue(start.measured < low - (high - low) || start.measured > high + (high - low), start.id)
        continue
      }
      const next = estimateFit({ ...start.input, calibrations: [calibration] })
      // With the exact size known, a tight fit can be refused.
      if ("fit" in next) assert.isTrue(next.fit.calibrated, start.id)
      else assert.isBelow(start.measured, start.estimate.components.sequence, start.id)
      const pool = "fit" in next ? next.components.pool : next.pool
      const before = start.estimate.components.pool
      assert.isAtMost(pool.high - pool.low, (before.high - before.low) / 2 + 2, start.id)
      assert.isTrue(
        pool.low - 1 <= start.measured && start.measured <= pool.high + 1,
        `${start.id}: ${pool.low / gib} to ${pool.high / gib}, measured ${start.measured / gib}`
      )
    }
  })

  it("calibrate models of other sizes: a 7B start calibrates a 72B estimate, and vice versa", () => {
    const pairs = known.flatMap((one) => known.filter((other) => other.id !== one.id).map((other) => [one, other] as const))
    const widths = pairs.flatMap(([one, other]) => {
      const calibration = learned(one)
      const next = estimateFit({ ...other.input, calibrations: calibration === null ? [] : [calibration] })
      if (!("fit" in next) || !next.fit.calibrated) return []
      const { high, low } = next.components.pool
      return [{ pair: `${one.id} for ${other.id}`, off: Math.abs((low + high) / 2 - other.measured) / other.measured }]
    })
    assert.isAtLeast(widths.length, 2)
    for (const { off, pair } of widths) assert.isAtMost(off, 0.01, pair)
  })
})
