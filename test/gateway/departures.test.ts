import { it } from "@effect/vitest"
import { Effect } from "effect"
import { holdsFor, runDepartures } from "../../packages/gateway/test/departures.ts"

for (const seed of [1, 2]) {
  it.live(`no caller who leaves gets a prefill for nothing, or for less than a caller who stays: 1,000 random departures, seed ${seed}`, () =>
    Effect.gen(function* () {
      holdsFor(yield* runDepartures(1_000, seed), 1_000)
    })
  )
}
