import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { progressLine, readProgress } from "../src/fetch/ProgressLine.ts"
import { makeSpeedMeter } from "../src/fetch/SpeedMeter.ts"

const second = 1_000
const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 40 }))

describe("the progress of a download", () => {
  it("contains the average speed of the last 30 seconds, and the remaining time at that speed", () => {
    const meter = makeSpeedMeter()
    const at = (seconds: number, bytes: number) => meter({ bytes, totalBytes: 10_000, waiting: false }, seconds * second)
    assert.deepInclude(at(0, 0), { bytesPerSecond: 0, secondsLeft: null, stalledSeconds: null })
    assert.deepInclude(at(10, 1_000), { bytesPerSecond: 100, secondsLeft: 90 })
    assert.deepInclude(at(20, 4_000), { bytesPerSecond: 200, secondsLeft: 30 })
    // Old progress does not count.
    assert.deepInclude(at(49, 4_900), { bytesPerSecond: 31, secondsLeft: 165 })
  })

  it("is stalled after a minute without data, and no longer after the next byte, when complete, or while waiting for another download", () => {
    const meter = makeSpeedMeter()
    const stalled = (seconds: number, bytes: number, waiting = false) => meter({ bytes, totalBytes: 100, waiting }, seconds * second).stalledSeconds
    assert.isNull(stalled(0, 10))
    assert.isNull(stalled(59, 10))
    assert.strictEqual(stalled(60, 10), 60)
    assert.strictEqual(stalled(95, 10), 95)
    assert.isNull(stalled(96, 11))
    assert.isNull(stalled(155, 11))
    assert.strictEqual(stalled(156, 11), 60)
    // Bytes that must be downloaded again do not count as a stall.
    assert.isNull(stalled(157, 5))
    assert.isNull(stalled(400, 5, true))
    assert.isNull(stalled(401, 100))
    assert.isNull(stalled(900, 100))
  })

  it.prop(
    "is parsed from the log as written",
    [
      Schema.Struct({
        bytes: count,
        totalBytes: count,
        bytesPerSecond: count,
        secondsLeft: Schema.NullOr(count),
        stalledSeconds: Schema.NullOr(count),
        waiting: Schema.Boolean
      })
    ],
    ([state]) => {
      const read = readProgress(`something else\n  ${progressLine(state)}\nverified\n`)
      if (state.waiting) return assert.strictEqual(read?.waiting, true)
      const expected = state.stalledSeconds === null ? state : { ...state, bytesPerSecond: 0, secondsLeft: null }
      assert.deepStrictEqual(read, expected)
    }
  )
})
