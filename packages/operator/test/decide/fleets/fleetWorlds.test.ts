import { assert, describe, it } from "@effect/vitest"
import { decide } from "../../../src/decide/decide.ts"
import { playWorld } from "./playWorld.ts"
import { wrongPlanners } from "./wrongPlanners.ts"

const count = Number(process.env.SEATRIAL_FLEET_WORLDS ?? 150)
const first = Number(process.env.SEATRIAL_FLEET_SEED ?? 1)

describe("in random worlds, the engines of a model", () => {
  it(
    `keep the invariants of fleets, and reach the wanted number once faults stop (${count} worlds from seed ${first})`,
    () => {
      const broken: Array<string> = []
      for (let seed = first; seed < first + count && broken.length < 10; seed++) {
        const faults = playWorld(decide, seed)
        if (faults.length > 0) broken.push(`SEATRIAL_FLEET_SEED=${seed}: ${faults.join("; ")}`)
      }
      assert.deepStrictEqual(broken, [])
    },
    count * 100 + 10_000
  )

  for (const { breaks, planner, what } of wrongPlanners)
    it(`show a planner that ${what}`, () => {
      let seed = 1
      while (seed <= 100 && !playWorld(planner, seed).includes(breaks)) seed++
      assert.isAtMost(seed, 100)
    })
})
