import { assert, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { compareLikelihood, differingFingerprints } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { quietlyAltered } from "./fileMutants.ts"
import { serveSample } from "./serveSample.ts"
import { sampleSubject, trySample } from "./trySample.ts"

it.live("a restarted engine is refused if its answers differ from the verified ones, but not if only the order of sums differs", () =>
  Effect.gen(function* () {
    const { likelihood, report } = yield* Effect.scoped(
      Effect.flatMap(serveSample({}), (served) => trySample(served, { rows: (name) => name === "text_likelihood" || name === "greedy_repeats" }))
    )
    const { fingerprints } = report
    assert.isAtLeast(fingerprints.length, 4)
    const compared = (options: Parameters<typeof serveSample>[0], kept: typeof likelihood = likelihood) =>
      Effect.scoped(
        Effect.gen(function* () {
          const subject = yield* sampleSubject(yield* serveSample(options), {
            change: (bare) => ({ ...bare, salt: "first" }),
            earlier: [{ fingerprints, likelihood: kept }]
          })
          return { differing: yield* differingFingerprints(subject, fingerprints), moved: yield* compareLikelihood({ ...subject, salt: "again" }) }
        })
      )
    assert.deepStrictEqual(yield* compared({}), { differing: 0, moved: { _tag: "Same" } })
    // Differences from rounding do not count as another model.
    assert.strictEqual((yield* compared({ mutant: "noise" })).moved._tag, "Same")
    for (const mutant of ["rope_off", "last_layer_skipped", "kv_heads_tiled"]) {
      const { differing, moved } = yield* compared({ mutant })
      assert.isAbove(differing, 0, mutant)
      assert.match(moved._tag === "Differs" ? moved.detail : "", /nats|shifted/, mutant)
    }
    const other = yield* compared({ files: trainedFiles("tiny-chat-sailor") })
    assert.isAbove(other.differing, 0)
    assert.match(other.moved._tag === "Differs" ? other.moved.detail : "", /shifted/)
    // This is why texts are also compared if the files have not been checked.
    const altered = yield* compared({ files: quietlyAltered() })
    assert.strictEqual(altered.differing, 0)
    assert.match(altered.moved._tag === "Differs" ? altered.moved.detail : "", /shifted/)
    assert.strictEqual((yield* compared({}, null)).moved._tag, "NotCompared")
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
