import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { knownPrompts } from "../../packages/reference-engine/test/mutants/knownPrompts.ts"
import { type Served, serveSample } from "./serveSample.ts"
import { killers } from "./table.ts"
import { trySample } from "./trySample.ts"

/** Trials of the engine that is wrong on all paths, and of those that are wrong on one. */
const trials = Number(process.env.SEATRIAL_KNOWN_TRIALS ?? 5)
const pathTrials = Number(process.env.SEATRIAL_KNOWN_PATH_TRIALS ?? 1)
/** Milliseconds that a test may take on a busy machine. */
const longest = 3_600_000
/** Seeds of the trials that the engine has recorded. */
const recorded = [1, 2, 3]

const cheating = Object.entries(killers).filter(([name]) => name.startsWith("only_known_"))
const source = new URL("../../packages/trial/src/", import.meta.url)
const constants = globSync("**/*.ts", { cwd: source }).flatMap((file) => readFileSync(new URL(file, source), "utf8").match(/"[^"\n]{12,}"/gu) ?? [])

/** Teaches the engine all constant texts in the source of the trial. */
const teachConstants = ({ url }: Served) =>
  Effect.forEach(constants, (text) =>
    HttpClient.execute(HttpClientRequest.post(`${url}/tokenize`).pipe(HttpClientRequest.bodyJsonUnsafe({ model: "m", prompt: text.slice(1, -1) })))
  )

/** The failed checks of a trial with this seed. */
const failedChecks = (served: Served, names: ReadonlyArray<string>, seed: number) =>
  Effect.map(trySample(served, { rows: (name) => names.includes(name), change: (subject) => ({ ...subject, seed }) }), ({ report }) =>
    report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
  )

describe("an engine that answers only what it knows from earlier trials and from the source soundly", () => {
  it.live(
    "is sound while it records trials",
    () =>
      Effect.gen(function* () {
        const names = [...new Set(cheating.flatMap(([, each]) => each))]
        const served = yield* serveSample({ mutant: "only_known_prompts" })
        knownPrompts.learns = true
        yield* teachConstants(served)
        for (const seed of recorded) assert.deepStrictEqual(yield* failedChecks(served, names, seed), [], `seed ${seed}`)
      }).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            knownPrompts.learns = false
          })
        ),
        Effect.scoped,
        Effect.provide(FetchHttpClient.layer)
      ),
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
