import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { cases } from "./cases.ts"
import { serveSample } from "./serveSample.ts"
import { killers } from "./table.ts"
import { trySample } from "./trySample.ts"

/** Rows that find faults of the computed numbers. */
const numeric = ["text_likelihood", "loaded_tensors", "reference_agrees"]
/** Faults that the reference cannot find, with the reason. */
const unfound: ReadonlyMap<string, string> = new Map([
  ["loaded_in_8_bits", "this model's rounded values differ less than the limit"],
  ["loaded_norm_shifted", "this model's rounded values differ less than the limit"],
  ["loaded_otherwise_later", "one value of a matrix"]
])

describe("a first trial of a commit that has a reference", () => {
  const failed = (mutant?: string) =>
    Effect.gen(function* () {
      const served = yield* serveSample(mutant === undefined ? {} : { mutant })
      const { report } = yield* trySample(served, { earlier: [], rows: (name) => name === "reference_agrees" })
      yield* Effect.logInfo(`${mutant ?? "sound"}: ${report.checks[0]?.detail}`)
      return report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  for (const sound of [undefined, "noise"]) {
    it.live(`passes the sound engine${sound === undefined ? "" : ", with sums in another order"}`, () =>
      Effect.map(failed(sound), (names) => assert.deepStrictEqual(names, []))
    )
  }
  for (const { mutant, name } of cases.filter(({ mutant, name }) => mutant !== undefined && killers[name]?.some((row) => numeric.includes(row)))) {
    if (unfound.has(name)) continue
    it.live(`finds ${name}`, () => Effect.map(failed(mutant), (names) => assert.deepStrictEqual(names, ["reference_agrees"])))
  }
})
