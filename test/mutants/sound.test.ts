import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { type SuiteSubject, thresholds } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { float32Files } from "./fileMutants.ts"
import { serveSample } from "./serveSample.ts"
import { type Earlier, trySample } from "./trySample.ts"

const count = (name: string, fallback: number) => Number(process.env[name] ?? fallback)
const runs = count("SEATRIAL_SOUND_RUNS", 20)
const load = count("SEATRIAL_SOUND_LOAD", 0)
/** The seed of the first trial. The next ones follow, so that each trial has other prompts. */
const firstSeed = count("SEATRIAL_SOUND_SEED", 1)

/** Threads that load the processor, like other programs on the machine of an engine. */
const neighbours = Effect.acquireRelease(
  Effect.sync(() => Array.from({ length: load }, () => new Worker("for (;;) Math.sqrt(Math.random())", { eval: true }))),
  (workers) => Effect.promise(() => Promise.all(workers.map((worker) => worker.terminate())))
)

/** The time limit of a trial for filling the cache, because these runs test busy machines. */
const { pressureSeconds } = thresholds

/** Variants that compute the same results, in the order of the runs. */
const kinds = [
  ["the sound engine", {}],
  ["sums in another order with each batch", { mutant: "noise" }],
  ["two tokens sent at once", { mutant: "two_tokens_a_chunk" }],
  ["the weights in float32", { files: float32Files() }],
  ["a card with less memory", { cardBytes: 8 * 2 ** 20 }]
] as const

describe(`none of ${runs} trials of a sound model fails, each with a new engine and ${load} busy threads`, () => {
  let earlier: Earlier = []

  it.live("the first one, without earlier results", () =>
    Effect.gen(function* () {
      yield* neighbours
      const change = (subject: SuiteSubject) => ({ ...subject, seed: firstSeed })
      const { likelihood, report } = yield* trySample(yield* serveSample({}), { pressureSeconds, change })
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
      earlier = [{ fingerprints: report.fingerprints, loadedChecksum: report.loaded_checksum ?? null, likelihood }]
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  for (let run = 1; run < runs; run++) {
    const [kind, what] = kinds[run % kinds.length] ?? kinds[0]
    it.live(`number ${run + 1}: ${kind}`, () =>
      Effect.gen(function* () {
        yield* neighbours
        const { report } = yield* trySample(yield* serveSample(what), {
          earlier,
          pressureSeconds,
          // A variant is another file, which the comparison with the hub would report. Here it must only compute the same.
          change: (subject) => ({ ...subject, seed: firstSeed + run, start: { ...subject.start, verifiedFiles: 7 } })
        })
        assert.deepStrictEqual(
          report.checks.filter(({ passed }) => !passed),
          []
        )
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }
})
