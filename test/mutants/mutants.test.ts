import { assert, describe, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { type SuiteSubject, suiteChecks } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { type Case, cases } from "./cases.ts"
import { serveSample } from "./serveSample.ts"
import { adapterKillers, anyRow, comparing, killers, needsExtent, needsHistory, sampleOf, unseen } from "./table.ts"
import { type Earlier, trySample } from "./trySample.ts"

/** Number of parameters from which a model gets all items. */
const realSize = 5_000_000

/** Checks that none of these faults can fail, with the reason. */
const idle: ReadonlyMap<string, string> = new Map([
  ["image_input", "no sample model takes images"],
  ["responses_images", "no sample model takes images"],
  ["messages_images", "no sample model takes images"],
  ["reasoning_effort", "no sample model's template knows efforts"],
  ["responses_effort", "no sample model's template knows efforts"],
  ["messages_effort", "no sample model's template knows efforts"]
])

/** The failed rows of a run with their details. */
const failures = ({ change, files, mutant, name }: Case, earlier: Earlier, rows: (name: string) => boolean) =>
  Effect.gen(function* () {
    const model = sampleOf(name)
    const served = yield* serveSample({ files: files?.() ?? trainedFiles(model), ...(mutant === undefined ? {} : { mutant }) })
    const { report } = yield* trySample(served, {
      model,
      ...(change === undefined ? {} : { change }),
      earlier: model === "tiny-chat" ? earlier : [],
      rows,
      ...(needsExtent.has(name) ? { parameters: realSize } : {})
    })
    return new Map(report.checks.filter(({ passed }) => !passed).map(({ detail, name }) => [name, detail]))
  }).pipe(Effect.scoped)

describe("the check suite", () => {
  // The results of an earlier trial of the commit, as every deployment has them except the first.
  let earlier: Earlier = []

  it.live("passes the sound engine", () =>
    Effect.gen(function* () {
      const served = yield* serveSample({})
      const { likelihood, report } = yield* trySample(served)
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
      assert.match(report.checks.find(({ name }) => name === "kv_pressure")?.detail ?? "", /, [1-9]\d* preempted, .* [1-9]\d* answers read again$/)
      earlier = [{ fingerprints: report.fingerprints, loadedChecksum: report.loaded_checksum ?? null, likelihood }]
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("passes the sound engine with the extent of a real model, but for the texts, of which the sample knows too little", () =>
    Effect.gen(function* () {
      const { report } = yield* trySample(yield* serveSample({}), { parameters: realSize, rows: (name) => name !== "text_likelihood" })
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
      assert.match(report.checks.find(({ name }) => name === "long_answer")?.detail ?? "", /^512 and 512 tokens/)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  for (const model of ["tiny-thinker", "tiny-thinker-always"] as const) {
    it.live(`passes ${model} and withdraws nothing`, () =>
      Effect.gen(function* () {
        const served = yield* serveSample({ files: trainedFiles(model) })
        const { report } = yield* trySample(served, { model })
        assert.deepStrictEqual(
          report.checks.filter(({ passed }) => !passed),
          []
        )
        assert.isUndefined(report.withdrawn)
        const rows = ["reasoning_separate", "json_mode", "json_schema", "tool_choice_auto", "tool_parallel", "tool_round_trip", "stop_strings"]
        assert.includeMembers(
          report.checks.map(({ name }) => name),
          model === "tiny-thinker" ? [...rows, "thinking_toggle"] : rows
        )
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }

  it("detects every fault, and every check detects a fault", () => {
    assert.deepStrictEqual(
      cases
        .filter(({ name }) => (killers[name] ?? adapterKillers[name] ?? []).length === 0 && unseen[name] === undefined && !anyRow.has(name))
        .map(({ name }) => name),
      []
    )
    assert.deepStrictEqual(
      Object.keys({ ...killers, ...adapterKillers, ...unseen }).filter((name) => !cases.some((one) => one.name === name)),
      []
    )
    const killing = new Set([...Object.values({ ...killers, ...adapterKillers }).flat(), "golden_answers"])
    assert.deepStrictEqual(
      suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })
        .map(({ name }) => name)
        .filter((name) => !killing.has(name) && !idle.has(name)),
      []
    )
  })

  it("finds every fault by a deciding check, not only by an informative one", () => {
    const informing = new Set(
      suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })
        .filter((check) => check.class === "informs")
        .map(({ name }) => name)
    )
    assert.deepStrictEqual([...informing], ["golden_answers", "output_sane", "needle"])
    const onlyInformed = Object.entries({ ...killers, ...adapterKillers }).filter(
      ([, checks]) => checks.length > 0 && checks.every((name) => informing.has(name))
    )
    assert.deepStrictEqual(onlyInformed, [])
  })

  it.live("distinguishes right from wrong answers if the model counts as one with half a billion parameters", () =>
    Effect.gen(function* () {
      const golden = (mutant?: string) =>
        Effect.gen(function* () {
          const served = yield* serveSample(mutant === undefined ? {} : { mutant })
          const { report } = yield* trySample(served, { parameters: 500_000_000, rows: (name) => name === "golden_answers" })
          return report.checks.every(({ passed }) => passed)
        }).pipe(Effect.scoped)
      assert.isTrue(yield* golden())
      for (const mutant of ["rope_interleaved", "last_layer_skipped", "kv_heads_tiled"]) assert.isFalse(yield* golden(mutant), mutant)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("finds faults of the prefix cache with blocks of any length", () =>
    Effect.gen(function* () {
      for (const mutant of [undefined, "cached_but_for_last", "cached_first_token_wrong"]) {
        const served = yield* serveSample({ blockSize: 96, ...(mutant === undefined ? {} : { mutant }) })
        const { report } = yield* trySample(served, { rows: (name) => name === "cache_hit_equal" })
        assert.strictEqual(report.passed, mutant === undefined, JSON.stringify(report.checks))
      }
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("finds answers that continue after their caller left, even if all of them end at the same time", () =>
    Effect.gen(function* () {
      const change = (subject: SuiteSubject) => ({ ...subject, maxContext: 128 })
      for (const mutant of [undefined, "abort_ignored"]) {
        const served = yield* serveSample(mutant === undefined ? {} : { mutant })
        const { report } = yield* trySample(served, { change, rows: (name) => name === "abort_frees" })
        assert.strictEqual(report.passed, mutant === undefined, JSON.stringify(report.checks))
      }
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  for (const one of cases) {
    const expected = killers[one.name] ?? []
    if (expected.length === 0 && !anyRow.has(one.name)) continue
    it.live(`finds ${one.name} (${one.spoils}): ${anyRow.has(one.name) ? "any row" : expected.join(", ")}`, () =>
      Effect.gen(function* () {
        // At a first trial only these checks may have another result, see `firstTrial.test.ts`.
        const before = expected.some((name) => comparing.has(name)) ? earlier : []
        // Run all rows if the fault appears only after others, otherwise only the rows that must find it.
        const failed = yield* failures(one, before, (name) => anyRow.has(one.name) || needsHistory.has(one.name) || expected.includes(name))
        if (anyRow.has(one.name)) assert.isAbove(failed.size, 0)
        assert.deepStrictEqual(
          expected.filter((name) => !failed.has(name)),
          [],
          JSON.stringify([...failed])
        )
      }).pipe(Effect.provide(FetchHttpClient.layer))
    )
  }
})
