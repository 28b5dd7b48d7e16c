import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { holdBodies, holdChecks } from "./bodies/holdBodies.ts"

const seed = Math.floor(Math.random() * 2 ** 31)

describe(`of mutated bodies (seed ${seed}) none ends in a fault, and no engine gets what is not in the vocabulary`, () => {
  it("of 1,000 that are checked", () => {
    const taken = holdChecks(seed, 1_000)
    // Both sides of the check are seen.
    assert.isTrue(taken > 50 && taken < 900, `${taken} were taken`)
  })

  it.live("of 100 that a gateway gets", () =>
    Effect.map(holdBodies(seed, 100), (reached) => assert.isTrue(reached > 5 && reached < 90, `${reached} reached the engine`))
  )
})
