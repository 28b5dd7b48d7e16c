import { it } from "@effect/vitest"
import { Effect } from "effect"
import { holdsFor, runAbortedRequests } from "../../packages/gateway/test/abortedRequests.ts"

for (const seed of [1, 2]) {
  it.live(`a caller that disconnects pays for its prefill like a caller that stays: 1,000 random disconnects, seed ${seed}`, () =>
    Effect.gen(function* () {
      holdsFor(yield* runAbortedRequests(1_000, seed), 1_000)
    })
  )
}
