import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { gpuDays, millisByDay } from "../src/index.ts"

const at = (iso: string) => Date.parse(iso)
const hold = (placed: string, released: string, gpus = 1, pricePerGpuHour = 3_600_000n) => ({
  gpus,
  pricePerGpuHour,
  placedAt: at(placed),
  releasedAt: at(released)
})

describe("GPU time", () => {
  it("is split at UTC midnights", () =>
    assert.deepStrictEqual(gpuDays([hold("2026-01-01T23:00:00Z", "2026-01-03T01:00:00Z", 2)]), [
      { day: "2026-01-01", gpuMillis: 7_200_000, micros: 7_200_000n },
      { day: "2026-01-02", gpuMillis: 172_800_000, micros: 172_800_000n },
      { day: "2026-01-03", gpuMillis: 7_200_000, micros: 7_200_000n }
    ]))

  it("does not include a day that begins at its release", () =>
    assert.deepStrictEqual(
      gpuDays([hold("2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z")]).map(({ day }) => day),
      ["2026-01-01"]
    ))

  it("costs nothing if its length is zero", () => assert.deepStrictEqual(gpuDays([hold("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")]), []))

  it("is rounded half up once per deployment and day, not per pod", () => {
    // A quarter of a second each, at one micro-dollar per second.
    const quarter = (second: number) => ({
      ...hold("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
      pricePerGpuHour: 3_600n,
      placedAt: second,
      releasedAt: second + 250
    })
    assert.strictEqual(gpuDays([quarter(0), quarter(1_000)])[0]?.micros, 1n)
    assert.strictEqual(gpuDays([quarter(0)])[0]?.micros, 0n)
  })

  const Moment = Schema.Int.check(Schema.isBetween({ minimum: at("2026-01-01T00:00:00Z"), maximum: at("2026-01-08T00:00:00Z") }))
  const Hold = Schema.Struct({
    gpus: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 16 })),
    price: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000_000 })),
    from: Moment,
    to: Moment
  })
  it.prop("sums to the length of the holds, and to the exact cost within half a micro-dollar per day", [Schema.Array(Hold)], ([holds]) => {
    const converted = holds.map(({ from, gpus, price, to }) => ({
      gpus,
      pricePerGpuHour: BigInt(price),
      placedAt: Math.min(from, to),
      releasedAt: Math.max(from, to)
    }))
    for (const each of converted) {
      const parts = [...millisByDay(each).values()]
      assert.strictEqual(
        parts.reduce((sum, part) => sum + part, 0),
        each.releasedAt - each.placedAt
      )
      assert.isTrue(parts.every((part) => part > 0 && part <= 86_400_000))
    }
    const days = gpuDays(converted)
    const exact = converted.reduce((sum, each) => sum + BigInt((each.releasedAt - each.placedAt) * each.gpus) * each.pricePerGpuHour, 0n)
    const charged = days.reduce((sum, { micros }) => sum + micros, 0n) * 3_600_000n
    assert.isTrue(2n * (charged > exact ? charged - exact : exact - charged) <= 3_600_000n * BigInt(days.length))
    assert.strictEqual(
      days.reduce((sum, { gpuMillis }) => sum + gpuMillis, 0),
      converted.reduce((sum, each) => sum + (each.releasedAt - each.placedAt) * each.gpus, 0)
    )
  })
})
