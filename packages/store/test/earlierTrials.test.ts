import { assert, layer } from "@effect/vitest"
import { type CheckReport, type ServingSettings, withdrawCapabilities } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Deployments, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { capabilities, checks, engineDigest, engineImage, estimate, facts, makeCaller, newModel, settings } from "./support/index.ts"

type Caller = Effect.Success<ReturnType<typeof makeCaller>>["caller"]

/** A run of a new model with recorded checks. With `serve` false it is verified if they passed. */
const checked = Effect.fnUntraced(function* (
  caller: Caller,
  key: string,
  overrides: {
    readonly report?: CheckReport
    readonly settings?: ServingSettings
    readonly engineVersion?: string
    readonly commit?: typeof facts.commit
  } = {},
  results: Parameters<Runs["Service"]["recordChecks"]>[3] = { likelihood: [[-0.5, -1.25]] }
) {
  const [deployments, runs] = [yield* Deployments, yield* Runs]
  const { orgId } = caller
  const { id } = yield* deployments.create(newModel(caller, key, key))
  const screened = {
    facts: { ...facts, commit: overrides.commit ?? facts.commit },
    settings: overrides.settings ?? settings,
    engineVersion: overrides.engineVersion ?? "reference-1"
  }
  yield* runs.recordScreening({ ...screened, id, orgId, engineImage, estimate, capabilities })
  for (const [from, to] of [
    ["screening", "provisioning"],
    ["provisioning", "booting"],
    ["booting", "checking"]
  ] as const) {
    yield* runs.enter({ id, orgId, from, to, reason: "Test" })
  }
  yield* runs.recordEngineImage(id, orgId, { image: engineImage, digest: engineDigest })
  const written = yield* runs.recordChecks(id, orgId, overrides.report ?? checks, results)
  const observed = Option.getOrThrow(yield* runs.observe(id))
  if (observed.revision === null) return yield* Effect.die("no revision")
  return { id, orgId, written, revision: observed.revision }
})

/** Activates the run. */
const verify = Effect.fnUntraced(function* ({ id, orgId }: { readonly id: Parameters<Runs["Service"]["release"]>[0]; readonly orgId: Caller["orgId"] }) {
  const runs = yield* Runs
  for (const [from, to] of [
    ["checking", "measuring"],
    ["measuring", "benchmarking"],
    ["benchmarking", "activating"]
  ] as const) {
    yield* runs.enter({ id, orgId, from, to, reason: "Test" })
  }
  assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
})

layer(layerStore, { excludeTestServices: true })("earlier trials", (it) => {
  it.effect("are the organization's own verified revisions with the same commit, GPU type and settings, those of the same engine version first", () =>
    Effect.gen(function* () {
      const [runs, sql] = [yield* Runs, yield* SqlClient.SqlClient]
      const { caller } = yield* makeCaller("trials-own")
      const { caller: stranger } = yield* makeCaller("trials-other")
      const first = yield* checked(caller, "trials-a")
      const now = yield* checked(caller, "trials-now", {}, {})
      assert.isTrue(first.written)
      // Not verified yet.
      assert.deepStrictEqual(yield* runs.earlierTrials(caller.orgId, now.revision), [])
      yield* verify(first)
      for (const [key, overrides] of [
        ["trials-b", { settings: { ...settings, max_context: 1_024 } }],
        ["trials-c", { engineVersion: "reference-2" }]
      ] as const) {
        yield* verify(yield* checked(caller, key, overrides))
      }
      const { fingerprints, suite, suite_version } = checks
      assert.deepStrictEqual(yield* runs.earlierTrials(caller.orgId, now.revision), [
        ...[null, "reference-2"].map((otherEngine) => ({
          otherEngine,
          suite,
          suiteVersion: suite_version,
          loadedChecksum: null,
          fingerprints,
          likelihood: [[-0.5, -1.25]]
        }))
      ])
      // A row of an earlier version, which had no format and stored the checksum as part of the text.
      yield* sql`
          UPDATE revisions SET checks = ${`{"suite": "trial", "suite_version": 1, "passed": true, "fingerprint_card": "Simulated-GPU x1",
            "fingerprints": [{ "prompt": "p1", "sha256": "${"d".repeat(64)}" }],
            "checks": [{ "name": "loaded_tensors", "passed": true, "detail": "12 values of 3 tensors are the files', checksum 0123456789abcdef" }]}`}::text::jsonb
          WHERE org_id = ${caller.orgId} AND id = ${first.revision.id}`
      const [earliest] = yield* runs.earlierTrials(caller.orgId, now.revision)
      assert.deepInclude(earliest, { suite: "trial", suiteVersion: 1, loadedChecksum: "0123456789abcdef" })
      const observed = Option.getOrThrow(yield* runs.observe(first.id)).revision?.checks
      assert.deepInclude(observed, { format: 2, loaded_checksum: "0123456789abcdef" })
      // A later version stored the failure of a check and of the run.
      const strange = { ...checks, outcomes: [{ name: "usage_exact", class: "required", outcome: "failed", code: "code_of_tomorrow", detail: "3 of 4" }] }
      yield* sql`UPDATE revisions SET checks = ${JSON.stringify(strange)}::text::jsonb WHERE org_id = ${caller.orgId} AND id = ${first.revision.id}`
      const { revision } = Option.getOrThrow(yield* runs.observe(first.id))
      assert.deepStrictEqual(revision?.checks?.outcomes, [{ name: "usage_exact", class: "required", outcome: "failed", detail: "3 of 4" }])
      // Another version may choose other kernels for quantized models.
      for (const [key, overrides] of [
        ["trials-f", { settings: { ...settings, kv_cache_dtype: "fp8" } }],
        ["trials-g", { settings: { ...settings, kv_cache_dtype: "fp8" }, engineVersion: "reference-2" }]
      ] as const) {
        yield* verify(yield* checked(caller, key, overrides))
      }
      const quantized = yield* checked(caller, "trials-h", { settings: { ...settings, kv_cache_dtype: "fp8" } }, {})
      assert.deepStrictEqual(
        (yield* runs.earlierTrials(caller.orgId, quantized.revision)).map(({ otherEngine }) => otherEngine),
        [null]
      )
      // The hold time and the name of the host class do not reach the engine.
      for (const [key, overrides] of [
        ["trials-d", { ...settings, hold_seconds: 60 }],
        ["trials-e", { ...settings, host_class: "other-name" }]
      ] as const) {
        const { revision } = yield* checked(caller, key, { settings: overrides })
        assert.strictEqual((yield* runs.earlierTrials(caller.orgId, revision)).length, 2)
      }
      // The revision's own trial is excluded.
      assert.deepStrictEqual(
        (yield* runs.earlierTrials(caller.orgId, first.revision)).map(({ otherEngine }) => otherEngine),
        ["reference-2"]
      )
      // Deleting a model disowns its trials for other engine versions; for the same version they still count.
      yield* sql`UPDATE models SET deleted_at = now() WHERE org_id = ${caller.orgId} AND slug IN ('trials-a', 'trials-c')`
      assert.deepStrictEqual(
        (yield* runs.earlierTrials(caller.orgId, now.revision)).map(({ otherEngine }) => otherEngine),
        [null]
      )
      assert.deepStrictEqual(yield* runs.earlierTrials(stranger.orgId, now.revision), [])
    })
  )

  it.effect("a withdrawn capability is removed from the revision, and a late report changes nothing", () =>
    Effect.gen(function* () {
      const [runs, sql] = [yield* Runs, yield* SqlClient.SqlClient]
      const { caller } = yield* makeCaller("trials-withdrawn")
      const without = withdrawCapabilities({ ...capabilities, supports_json_mode: true }, ["json_mode"])
      const run = yield* checked(caller, "trials-withdrawn", {}, { capabilities: without })
      const stored = yield* sql`SELECT capabilities FROM revisions WHERE org_id = ${caller.orgId} AND id = ${run.revision.id}`
      assert.deepStrictEqual(stored, [{ capabilities: without }])
      yield* runs.enter({ id: run.id, orgId: caller.orgId, from: "checking", to: "failed", reason: "Test" })
      assert.isFalse(yield* runs.recordChecks(run.id, caller.orgId, { ...checks, passed: false }, { capabilities }))
      assert.deepStrictEqual(yield* sql`SELECT capabilities FROM revisions WHERE org_id = ${caller.orgId} AND id = ${run.revision.id}`, stored)
    })
  )
})
