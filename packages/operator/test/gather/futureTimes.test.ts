import { assert, describe, it } from "@effect/vitest"
import { type FutureTimes, readTimes } from "../../src/gather/FutureTimes.ts"
import { deploymentId } from "../observations.ts"

describe("a time of the run or of its objects", () => {
  const known: FutureTimes = new Map()
  const at = (now: number, of: string, time: number) => {
    const times = readTimes(known, deploymentId, now)
    const counted = times.at(of, time)
    assert.strictEqual(times.firstReadings.get(time) ?? time, counted)
    return counted
  }

  it("counts as it is once it is in the past", () => assert.strictEqual(at(100, "phase 1", 100), 100))
  it("counts from its first reading if it lay in the future, even after it has passed", () => {
    assert.deepStrictEqual(
      [50, 60, 150].map((now) => at(now, "phase 1", 100)),
      [50, 50, 50]
    )
  })
  it("counts separately for each field with the same value", () => {
    at(50, "phase 1", 100)
    assert.strictEqual(at(60, "phase 2", 100), 60)
  })
  it("counts no later if the clock is set back again", () => {
    at(50, "phase 3", 100)
    assert.strictEqual(at(20, "phase 3", 100), 20)
  })
  it("is forgotten when its field changes", () => {
    at(50, "phase 4", 100)
    at(60, "phase 5", 1)
    assert.isFalse(known.has(deploymentId))
  })
})
