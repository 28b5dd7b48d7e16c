import { assert, describe, it } from "@effect/vitest"
import { compareLater, lacksReference } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { serveSample } from "./serveSample.ts"
import { sampleSubject, trySample } from "./trySample.ts"

describe("a reference that comes after the other checks", () => {
  const comparedLater = (mutant?: string) =>
    Effect.gen(function* () {
      const served = yield* serveSample(mutant === undefined ? {} : { mutant })
      const rows = (name: string) => name === "engine_identity" || name === "reference_agrees"
      const before = yield* trySample(served, { earlier: [], rows, change: (subject) => ({ ...subject, reference: null, noReference: "still_computing" }) })
      assert.isTrue(lacksReference(before.report))
      const { report } = yield* compareLater(yield* sampleSubject(served, { earlier: [] }), before)
      assert.isFalse(lacksReference(report))
      const suiteRow = (checks: typeof report.checks) => checks.find(({ name }) => name === "suite")?.detail ?? ""
      assert.match(suiteRow(before.report.checks), /: 1 run, no_reference: still_computing, 1 not applicable/u)
      assert.match(suiteRow(report.checks), /: 2 run, 0 not applicable, \d+ s$/u)
      return report
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  it.live("passes the sound engine", () =>
    Effect.gen(function* () {
      const report = yield* comparedLater()
      assert.isTrue(report.passed)
      const outcomes = report.outcomes.map(({ name, outcome }) => `${name} ${outcome}`)
      assert.deepStrictEqual(outcomes, ["engine_identity passed", "reference_agrees passed"])
    })
  )

  it.live("finds a fault", () =>
    Effect.gen(function* () {
      const report = yield* comparedLater("loaded_heads_swapped")
      assert.isFalse(report.passed)
      const rows = report.checks.map(({ name, passed }) => `${name} ${passed}`)
      assert.deepStrictEqual(rows, ["engine_identity true", "reference_agrees false", "suite true"])
    })
  )
})
