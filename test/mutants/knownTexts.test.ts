import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { knownPrompts } from "../../packages/reference-engine/test/mutants/knownPrompts.ts"
import { serveSample } from "./serveSample.ts"
import { trySample } from "./trySample.ts"

it.live("text_likelihood alone finds an engine that is right only for the prompts of an earlier trial", () =>
  Effect.gen(function* () {
    const served = yield* serveSample({ mutant: "only_known_prompts" })
    const passes = (seed: number) =>
      Effect.map(trySample(served, { rows: (name) => name === "text_likelihood", change: (subject) => ({ ...subject, seed }) }), ({ report }) => report.passed)
    knownPrompts.learns = true
    assert.isTrue(yield* passes(1), "the recorded trial")
    knownPrompts.learns = false
    assert.isTrue(yield* passes(1), "the recorded trial again")
    for (const seed of [2, 3, 4]) assert.isFalse(yield* passes(seed), `the trial with seed ${seed}`)
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        knownPrompts.learns = false
        knownPrompts.forget()
      })
    ),
    Effect.scoped,
    Effect.provide(FetchHttpClient.layer)
  )
)
