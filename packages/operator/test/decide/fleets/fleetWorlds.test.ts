import { assert, describe, it } from "@effect/vitest"
import { decide } from "../../../src/decide/decide.ts"
import { playMove, playWorld } from "./playWorld.ts"
import { type WrongPlanner, wrongMoves, wrongPlanners } from "./wrongPlanners.ts"

const count = Number(process.env.SEATRIAL_FLEET_WORLDS ?? 100)
const first = Number(process.env.SEATRIAL_FLEET_SEED ?? 1)

const plays = {
  "keep the invariants of fleets, and reach the wanted number once faults stop": playWorld,
  "do so while the model moves to a new revision": playMove
}

describe("in random worlds, the engines of a model", () => {
  for (const [what, play] of Object.entries(plays))
    it(
      `${what} (${count} worlds from seed ${first})`,
      () => {
        const broken: Array<string> = []
        for (let seed = first; seed < first + count && broken.length < 10; seed++) {
          const faults = play(decide, seed)
          if (faults.length > 0) broken.push(`SEATRIAL_FLEET_SEED=${seed}: ${faults.join("; ")}`)
        }
        assert.deepStrictEqual(broken, [])
      },
      count * 100 + 10_000
    )

  const isFound = (play: typeof playWorld, { breaks, planner }: WrongPlanner): boolean => {
    for (let seed = 1; seed <= 300; seed++) if (play(planner, seed).includes(breaks)) return true
    return false
  }
  for (const wrong of wrongPlanners) it(`show a planner that ${wrong.what}`, () => assert.isTrue(isFound(playWorld, wrong)))
  for (const wrong of wrongMoves) it(`show a planner that ${wrong.what}`, () => assert.isTrue(isFound(playMove, wrong)))
})
