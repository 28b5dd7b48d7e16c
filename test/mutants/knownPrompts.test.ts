import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { knownPrompts } from "../../packages/reference-engine/test/mutants/knownPrompts.ts"
import { type Served, serveSample } from "./serveSample.ts"
import { killers } from "./table.ts"
import { tinyReference, trySample } from "./trySample.ts"

/** Trials of an engine that is wrong on all paths, and of those that are wrong on one. */
const trials = Number(process.env.SEATRIAL_KNOWN_TRIALS ?? 5)
const pathTrials = Number(process.env.SEATRIAL_KNOWN_PATH_TRIALS ?? 1)
/** Milliseconds that a test may take on a busy machine. */
const longest = 3_600_000
/** Seeds of the trials that the engine has recorded. */
const recorded = [1, 2, 3]

/** An engine that does not contradict itself. Only the reference finds it. */
const consistent = "unknown_prompts_mlp_halved"
const cheating = Object.entries(killers).filter(([name]) => name.startsWith("only_known_"))
const source = new URL("../../packages/trial/src/", import.meta.url)
const constants = globSync("**/*.ts", { cwd: source }).flatMap((file) => readFileSync(new URL(file, source), "utf8").match(/"[^"\n]{12,}"/gu) ?? [])

/** Teaches the engine all constant texts in the source of the trial. */
const teachConstants = ({ url }: Served) =>
  Effect.forEach(constants, (text) =>
    HttpClient.execute(HttpClientRequest.post(`${url}/tokenize`).pipe(HttpClientRequest.bodyJsonUnsafe({ model: "m", prompt: text.slice(1, -1) })))
  )

const names = [...new Set(cheating.flatMap(([, each]) => each))]

/** The failed checks of a trial with this seed. */
const failedChecks = (served: Served, names: ReadonlyArray<string>, seed: number) =>
  Effect.map(trySample(served, { rows: (name) => names.includes(name), change: (subject) => ({ ...subject, seed }) }), ({ report }) =>
    report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
  )

/** Runs a part of a test while the engine records all prompts. */
const recording = <A, E, R>(part: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      knownPrompts.learns = true
    }),
    () => part,
    () =>
      Effect.sync(() => {
        knownPrompts.learns = false
      })
  )

describe("an engine that answers only what it knows from earlier trials and from the source soundly", () => {
  it.live(
    "is sound while it records trials",
    () =>
      Effect.gen(function* () {
        const served = yield* serveSample({ mutant: "only_known_prompts" })
        yield* teachConstants(served)
        for (const seed of recorded) assert.deepStrictEqual(yield* failedChecks(served, names, seed), [], `seed ${seed}`)
      }).pipe(recording, Effect.scoped, Effect.provide(FetchHttpClient.layer)),
    longest
  )

  for (const [mutant, names] of cheating) {
    const count = mutant === "only_known_prompts" ? trials : pathTrials
    it.live(
      `passes a recorded trial, and fails ${count} of ${count} others: ${mutant}`,
      () =>
        Effect.gen(function* () {
          const served = yield* serveSample({ mutant })
          assert.deepStrictEqual(yield* failedChecks(served, names, recorded[0] ?? 1), [])
          const passed: Array<number> = []
          for (let seed = 1_001; seed <= 1_000 + count; seed++) if ((yield* failedChecks(served, names, seed)).length === 0) passed.push(seed)
          assert.deepStrictEqual(passed, [], "seeds of trials that found nothing")
        }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
      longest
    )
  }
})

describe("an engine with another model after texts that it does not know from an earlier trial and from the source", () => {
  it.live(
    `passes the recorded trial, and fails ${trials} of ${trials} others by the drawn sequences of the reference: ${consistent}`,
    () =>
      Effect.gen(function* () {
        const [first = 1] = recorded
        const rows = [...names, "reference_agrees"]
        const served = yield* serveSample({ mutant: consistent })
        knownPrompts.forget()
        yield* recording(Effect.andThen(teachConstants(served), failedChecks(served, rows, first)))
        assert.deepStrictEqual(yield* failedChecks(served, rows, first), [])

        const { drawn = 0, sequences } = tinyReference
        const unknown = sequences.slice(sequences.length - drawn).filter(({ ids }) => !knownPrompts.knows(ids))
        assert.isAbove(unknown.length, drawn / 2)

        assert.deepStrictEqual(yield* failedChecks(served, rows, 1_001), ["reference_agrees"])
        const passed: Array<number> = []
        for (let seed = 1_001; seed <= 1_000 + trials; seed++) if ((yield* failedChecks(served, ["reference_agrees"], seed)).length === 0) passed.push(seed)
        assert.deepStrictEqual(passed, [], "seeds of trials that found nothing")
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
    longest
  )
})
