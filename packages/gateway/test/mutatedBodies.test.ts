import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { holdBodies, holdChecks } from "./bodies/holdBodies.ts"

const seed = Math.floor(Math.random() * 2 ** 31)

describe(`mutated bodies (seed ${seed}) cause no defect, and engines get only fields of the vocabulary`, () => {
  it("for 1,000 checked bodies", () => {
    const taken = holdChecks(seed, 1_000)
    // Both outcomes of the check occur.
    assert.isTrue(taken > 50 && taken < 900, `${taken} were taken`)
  })

  it.live("for 100 bodies sent to a gateway", () =>
    Effect.map(holdBodies(seed, 100), (reached) => assert.isTrue(reached > 5 && reached < 90, `${reached} reached the engine`))
  )
})
