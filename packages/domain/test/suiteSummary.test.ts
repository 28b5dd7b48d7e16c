import { assert, describe, it } from "@effect/vitest"
import { describeUnconfirmed, readUnconfirmed, type UnconfirmedChecks } from "../src/suiteSummary.ts"

const cases: ReadonlyArray<readonly [checks: UnconfirmedChecks, lists: ReadonlyArray<string>]> = [
  [{ notReached: [], notSeen: [] }, []],
  [{ notReached: ["json_mode"], notSeen: [] }, ["1 not reached (json_mode)"]],
  [{ notReached: [], notSeen: ["stop_strings", "seed"] }, ["2 not seen (stop_strings, seed)"]],
  [{ notReached: ["json_mode"], notSeen: ["seed"] }, ["1 not reached (json_mode)", "1 not seen (seed)"]]
]

describe("the summary of a check suite", () => {
  for (const [checks, lists] of cases) {
    it(`lets a client read which checks confirmed nothing: ${lists.join(", ") || "none"}`, () => {
      const detail = `seatrial-core 12: 40 run, 3 not applicable${describeUnconfirmed(checks)} (image_input), 100 s`
      assert.deepStrictEqual(readUnconfirmed(detail), lists)
    })
  }

  it("may be cut within a list", () => {
    const detail = `seatrial-core 12: 40 run${describeUnconfirmed({ notReached: ["json_mode", "json_schema"], notSeen: [] })}`
    assert.deepStrictEqual(readUnconfirmed(detail.slice(0, -8)), ["2 not reached (json_mode, json"])
  })
})
