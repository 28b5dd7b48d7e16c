import { assert, layer } from "@effect/vitest"
import { type CheckReport, type ServingSettings, withdrawCapabilities } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Deployments, Runs } from "../src/index.ts"
import { capabilities, checks, engineDigest, engineImage, estimate, facts, makeCaller, newModel, settings } from "../src/testing.ts"
import { layerStore } from "./stage.ts"

type Caller = Effect.Success<ReturnType<typeof makeCaller>>["caller"]

/** A run of a new model that has been checked; `serve` false: verified where it passed. */
const checked = Effect.fnUntraced(function* (
  caller: Caller,
  key: string,
  told: { readonly report?: CheckReport; readonly settings?: ServingSettings; readonly engineVersion?: string; readonly commit?: typeof facts.commit } = {},
  kept: Parameters<Runs["Service"]["recordChecks"]>[3] = { likelihood: [[-0.5, -1.25]] }
) {
  const [deployments, runs] = [yield* Deployments, yield* Runs]
  const { orgId } = caller
  const { id } = yield* deployments.create(newModel(caller, key, key))
  const screened = {
    facts: { ...facts, commit: told.commit ?? facts.commit },
    settings: told.settings ?? settings,
    engineVersion: told.engineVersion ?? "reference-1"
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
  const written = yield* runs.recordChecks(id, orgId, told.report ?? checks, kept)
  const observed = Option.getOrThrow(yield* runs.observe(id))
  if (observed.revision === null) return yield* Effect.die("no revision")
  return { id, orgId, written, revision: observed.revision }
})

/** To where it serves. */
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
  it.effect(
    "are those of the organization's own verified revisions that are the same in commit, card and settings, those of the same engine version first",
    () =>
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
        for (const [key, told] of [
          ["trials-b", { settings: { ...settings, max_context: 1_024 } }],
          ["trials-c", { engineVersion: "reference-2" }]
        ] as const) {
          yield* verify(yield* checked(caller, key, told))
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
        // A literal row of an earlier version, which had no format and stored the checksum as a part of the text.
        yield* sql`
          UPDATE revisions SET checks = ${`{"suite": "trial", "suite_version": 1, "passed": true, "fingerprint_card": "Simulated-GPU x1",
            "fingerprints": [{ "prompt": "p1", "sha256": "${"d".repeat(64)}" }],
            "checks": [{ "name": "loaded_tensors", "passed": true, "detail": "12 values of 3 tensors are the files', checksum 0123456789abcdef" }]}`}::text::jsonb
          WHERE org_id = ${caller.orgId} AND id = ${first.revision.id}`
        const [earliest] = yield* runs.earlierTrials(caller.orgId, now.revision)
        assert.deepInclude(earliest, { suite: "trial", suiteVersion: 1, loadedChecksum: "0123456789abcdef" })
        const observed = Option.getOrThrow(yield* runs.observe(first.id)).revision?.checks
        assert.deepInclude(observed, { format: 2, loaded_checksum: "0123456789abcdef" })
        // Another version may choose other kernels for what is quantized.
        for (const [key, told] of [
          ["trials-f", { settings: { ...settings, kv_cache_dtype: "fp8" } }],
          ["trials-g", { settings: { ...settings, kv_cache_dtype: "fp8" }, engineVersion: "reference-2" }]
        ] as const) {
          yield* verify(yield* checked(caller, key, told))
        }
        const quantized = yield* checked(caller, "trials-h", { settings: { ...settings, kv_cache_dtype: "fp8" } }, {})
        assert.deepStrictEqual(
          (yield* runs.earlierTrials(caller.orgId, quantized.revision)).map(({ otherEngine }) => otherEngine),
          [null]
        )
        // How long it is held, and what its host class is called, is nothing that its engine hears of.
        for (const [key, told] of [
          ["trials-d", { ...settings, hold_seconds: 60 }],
          ["trials-e", { ...settings, host_class: "other-name" }]
        ] as const) {
          const { revision } = yield* checked(caller, key, { settings: told })
          assert.strictEqual((yield* runs.earlierTrials(caller.orgId, revision)).length, 2)
        }
        // Its own is none of them.
        assert.deepStrictEqual(
          (yield* runs.earlierTrials(caller.orgId, first.revision)).map(({ otherEngine }) => otherEngine),
          ["reference-2"]
        )
        // Whoever deletes what an older version served disowns it; of the same version it counts all the same.
        yield* sql`UPDATE models SET deleted_at = now() WHERE org_id = ${caller.orgId} AND slug IN ('trials-a', 'trials-c')`
        assert.deepStrictEqual(
          (yield* runs.earlierTrials(caller.orgId, now.revision)).map(({ otherEngine }) => otherEngine),
          [null]
        )
        assert.deepStrictEqual(yield* runs.earlierTrials(stranger.orgId, now.revision), [])
      })
  )

  it.effect("a capability that was withdrawn is the revision's no more, and a report that is late changes nothing", () =>
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
