import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { thresholds } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { float32Files } from "./fileMutants.ts"
import { serveSample } from "./serveSample.ts"
import { type Earlier, trySample } from "./trySample.ts"

const count = (name: string, fallback: number) => Number(process.env[name] ?? fallback)
const runs = count("SEATRIAL_SOUND_RUNS", 20)
const load = count("SEATRIAL_SOUND_LOAD", 0)

/** Threads that compute for nothing, as neighbours of an engine do. */
const neighbours = Effect.acquireRelease(
  Effect.sync(() => Array.from({ length: load }, () => new Worker("for (;;) Math.sqrt(Math.random())", { eval: true }))),
  (workers) => Effect.promise(() => Promise.all(workers.map((worker) => worker.terminate())))
)

/** What a trial gives it, and no more: a machine that is too busy for pressure on the cache is what these runs are about. */
const { pressureSeconds } = thresholds

/** What computes the same, in the order in which the runs take them. */
const kinds = [
  ["the sound engine", {}],
  ["sums in another order with each batch", { mutant: "noise" }],
  ["two tokens sent at once", { mutant: "two_tokens_a_chunk" }],
  ["the weights in float32", { files: float32Files() }],
  ["a card with less memory", { cardBytes: 8 * 2 ** 20 }]
] as const

describe(`of ${runs} trials of a sound model, each with a new engine and beside ${load} busy neighbours, none fails`, () => {
  let earlier: Earlier = []

  it.live("the first, of which nothing was known", () =>
    Effect.gen(function* () {
      yield* neighbours
      const { likelihood, report } = yield* trySample(yield* serveSample({}), { pressureSeconds })
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
          // What was made of it is another file, which the hub would find; here it has to compute the same.
          change: (subject) => ({ ...subject, start: { ...subject.start, verifiedFiles: 7 } })
        })
        assert.deepStrictEqual(
          report.checks.filter(({ passed }) => !passed),
          []
        )
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }
})
