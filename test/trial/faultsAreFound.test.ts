import { assert, describe, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { serveSample } from "../mutants/serveSample.ts"
import { killers } from "../mutants/table.ts"
import { trySample } from "../mutants/trySample.ts"

/** Fast faults of several kinds from `npm run test:mutants`. */
const quick = ["loaded_in_8_bits", "usage_stream_differs", "encoded_by_characters", "salt_ignored"]
const rows = new Set(quick.flatMap((name) => killers[name] ?? []))

const failures = (mutant?: string) =>
  Effect.gen(function* () {
    const served = yield* serveSample(mutant === undefined ? {} : { mutant })
    const wanted = mutant === undefined ? rows : new Set(killers[mutant] ?? [])
    const { report } = yield* trySample(served, { rows: (name) => wanted.has(name) })
    return report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("the check suite", () => {
  it.live("passes the sound engine", () => Effect.map(failures(), (failed) => assert.deepStrictEqual(failed, [])))
  it.live("gives an always reasoning model enough tokens before a tool call, and does not withdraw tools", () =>
    Effect.gen(function* () {
      const model = "tiny-thinker-always"
      const { report } = yield* trySample(yield* serveSample({ files: trainedFiles(model) }), { model, rows: (name) => name === "tool_choice_auto" })
      assert.deepStrictEqual(
        report.checks.map(({ name, passed }) => [name, passed]),
        [
          ["tool_choice_auto", true],
          ["suite", true]
        ]
      )
      assert.isUndefined(report.withdrawn)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
  for (const mutant of quick) {
    it.live(`finds ${mutant}`, () => Effect.map(failures(mutant), (failed) => assert.includeMembers(failed, [...(killers[mutant] ?? [])])))
  }
})
