import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { knownPrompts } from "../../packages/reference-engine/test/mutants/knownPrompts.ts"
import { serveSample } from "./serveSample.ts"
import { trySample } from "./trySample.ts"

const trials = Number(process.env.SEATRIAL_KNOWN_TRIALS ?? 5)
const rows = new Set(["text_likelihood", "decode_matches_prefill"])

it.live(`an engine that knows the prompts of an earlier trial passes the same prompts and fails ${trials} other trials`, () =>
  Effect.gen(function* () {
    const served = yield* serveSample({ mutant: "only_known_prompts" })
    const failed = (seed: number) =>
      Effect.map(trySample(served, { rows: (name) => rows.has(name), change: (subject) => ({ ...subject, seed }) }), ({ report }) =>
        report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
      )
    knownPrompts.learns = true
    assert.deepStrictEqual(yield* failed(1), [])
    knownPrompts.learns = false
    assert.deepStrictEqual(yield* failed(1), [])
    for (let trial = 1; trial <= trials; trial++) {
      assert.deepStrictEqual(yield* failed(1 + trial), ["decode_matches_prefill"], `seed ${1 + trial}`)
    }
    knownPrompts.prompts.clear()
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
)
