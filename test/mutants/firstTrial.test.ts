import { assert, describe, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { type Case, cases } from "./cases.ts"
import { serveSample } from "./serveSample.ts"
import { comparing, firstTrial, killers, sampleOf } from "./table.ts"
import { trySample } from "./trySample.ts"

/**
 * Faults whose result at a first trial may differ from that at a later one. `mutants.test.ts` runs a first trial of all others, and `knownPrompts.test.ts` of
 * engines that know earlier prompts.
 */
const compared = cases.filter(({ name }) => !name.startsWith("only_known_") && killers[name]?.some((row) => comparing.has(row)))

describe("a first trial of a commit that has a reference", () => {
  const failed = ({ change, files, mutant, name }: Omit<Case, "spoils">, rows: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const model = sampleOf(name)
      const served = yield* serveSample({ files: files?.() ?? trainedFiles(model), ...(mutant === undefined ? {} : { mutant }) })
      const { report } = yield* trySample(served, {
        model,
        ...(change === undefined ? {} : { change }),
        earlier: [],
        rows: (row) => rows.includes(row)
      })
      return report.checks.filter(({ passed }) => !passed).map((check) => check.name)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  for (const sound of [{ name: "sound" }, { name: "noise", mutant: "noise" }]) {
    it.live(`passes the sound engine${sound.mutant === undefined ? "" : ", with sums in another order"}`, () =>
      Effect.map(failed(sound, ["reference_agrees"]), (names) => assert.deepStrictEqual(names, []))
    )
  }

  it("is described for exactly the faults that an earlier trial may find", () => {
    assert.deepStrictEqual(Object.keys(firstTrial).toSorted(), compared.map(({ name }) => name).toSorted())
  })

  for (const one of compared) {
    const expected = firstTrial[one.name] ?? []
    if (typeof expected === "string") {
      const rows = [...comparing, "reference_agrees", ...(killers[one.name] ?? [])]
      it.live(`does not find ${one.name} (${expected})`, () => Effect.map(failed(one, rows), (names) => assert.deepStrictEqual(names, [])))
      continue
    }
    it.live(`finds ${one.name}: ${expected.join(", ")}`, () =>
      Effect.map(failed(one, expected), (names) => assert.deepStrictEqual(names.toSorted(), expected.toSorted()))
    )
  }
})
