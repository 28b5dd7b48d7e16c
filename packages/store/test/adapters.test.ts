import { assert, layer } from "@effect/vitest"
import { Commit, type Fidelity, type RepositoryFacts, type ServingSettings } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { type CreateInput, Deployments, Metering, NeededWeights, Requests, Routes, Runs } from "../src/index.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerStore, soon } from "./stage.ts"
import { beginRequest, capabilities, checks, engineDigest, engineImage, estimate, facts, makeCaller, makeServing, newModel, settings } from "./support/index.ts"

const baseCommit = Commit.make("b".repeat(40))
const contentHash = "e".repeat(64)
const adapted = (commit: Commit = baseCommit): RepositoryFacts => ({
  ...facts,
  repo: "seatrial/tiny-adapter",
  commit: Commit.make("a".repeat(40)),
  files: [{ path: "adapter_model.safetensors", size: 100, blob_id: "b".repeat(40), sha256: "d".repeat(64) }],
  adapter: {
    base: { repo: "seatrial/tiny-base", commit, files: facts.files },
    rank: 8,
    uniform: true,
    alpha: 16,
    rslora: false,
    named_by: "list",
    listed: ["q_proj"],
    targets: ["q_proj"],
    unpaired: [],
    experts: false,
    bytes: 100,
    template: "base",
    content_hash: contentHash
  }
})
const fidelity: Fidelity = {
  tier: "exact",
  suite: "seatrial-fidelity",
  suiteVersion: 1,
  n: 200,
  passed: { child: 141, adapter: 141, base: 151 },
  rule1: { passed: true, diffPoints: 0, standardErrorPoints: 0 },
  rule2: { status: "passed", identicalAdapterChild: 196, identicalBaseChild: 23, medianDivergenceChars: 33 },
  withinUlpMin: 1,
  measuredAt: 1_795_305_207_185
}
const path = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"] as const

layer(NeededWeights.layerSql.pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })("a model with an adapter", (it) => {
  it.effect("needs its base, is reused only with the same base, and its receipts contain both commits and the content hash of the adapter", () =>
    Effect.gen(function* () {
      const [deployments, metering, requests, routes, runs] = [yield* Deployments, yield* Metering, yield* Requests, yield* Routes, yield* Runs]
      const { forget, list } = yield* NeededWeights
      const { caller } = yield* makeCaller("adapted")
      const { orgId } = caller
      const own: ServingSettings = { ...settings, engine_flags: { max_num_seqs: 3 } }
      const screen = Effect.fnUntraced(function* (input: CreateInput, found: RepositoryFacts) {
        const { id } = yield* deployments.create(input)
        yield* runs.recordScreening({ id, orgId, facts: found, settings: own, engineVersion: "reference-1", engineImage, estimate, capabilities })
        const run = Option.getOrThrow(yield* runs.observe(id))
        return { id, modelId: run.modelId, revision: run.revision ?? assert.fail() }
      })
      const first = yield* screen(newModel(caller, "one", "tuned"), adapted())
      assert.deepStrictEqual(first.revision.facts, adapted())
      const again = (key: string): CreateInput => ({ ...newModel(caller, key), target: { _tag: "Redeploy", modelId: first.modelId, ref: null } })
      let from: "screening" | (typeof path)[number] = "screening"
      for (const to of path) {
        yield* runs.enter({ id: first.id, orgId, from, to, reason: "Test" })
        if (to === "checking") {
          yield* runs.recordEngineImage(first.id, orgId, { image: engineImage, digest: engineDigest })
          yield* runs.recordChecks(first.id, orgId, { ...checks, fidelity })
        }
        from = to
      }
      yield* runs.activate({ id: first.id, orgId, from: "activating" })
      assert.includeDeepMembers(
        [...(yield* list)],
        [
          { repo: "seatrial/tiny-adapter", commit: "a".repeat(40) },
          { repo: "seatrial/tiny-base", commit: "b".repeat(40) }
        ]
      )

      yield* soon(Effect.map(routes.find(orgId, "adapted/tuned"), Option.isSome))
      const route = Option.getOrThrow(yield* routes.find(orgId, "adapted/tuned"))
      assert.isTrue(route.adapted)
      const start = yield* startOf(caller, { model: route.model, modelId: route.modelId, revisionId: route.revisionId })
      yield* beginRequest(metering, start)
      const { engineVersion, hfRevision, prices } = route
      yield* metering.end(endOf(start, { receipt: { prices, hfRevision, engineVersion } }))
      const receipt = Option.getOrThrow(yield* requests.findReceipt(orgId, start.id))
      assert.deepStrictEqual(receipt.verification?.fidelity, fidelity)
      assert.deepInclude(receipt, {
        hf_revision: "a".repeat(40),
        base_hf_revision: "b".repeat(40),
        adapter_hf_revision: "a".repeat(40),
        adapter_content_hash: contentHash
      })

      // The facts of an adapter's commit depend on its base.
      assert.isTrue(Option.isNone(yield* deployments.knownFacts(orgId, { repo: "seatrial/tiny-adapter" }, "a".repeat(40))))
      const same = yield* screen(again("two"), adapted())
      assert.strictEqual(same.revision.id, first.revision.id)
      yield* runs.enter({ id: same.id, orgId, from: "screening", to: "failed", reason: "Test", failure: { code: "boot_timeout", text: "late" } })
      const moved = yield* screen(again("three"), adapted(Commit.make("c".repeat(40))))
      assert.notStrictEqual(moved.revision.id, first.revision.id)

      // Runs that use the adapter's files also use its base.
      yield* runs.noteWeights(moved.id, orgId, { store: "seatrial/weights", manifest: "one" })
      const noted = Effect.map(runs.observe(moved.id), (run) => Option.getOrThrow(run).storedWeights.length)
      assert.strictEqual(yield* noted, 1)
      yield* forget({ repo: "seatrial/tiny-base", commit: "c".repeat(40) })
      assert.strictEqual(yield* noted, 0)
    })
  )

  it.effect("differs from a model without an adapter, whose receipts contain no base", () =>
    Effect.gen(function* () {
      const [metering, requests] = [yield* Metering, yield* Requests]
      const { caller } = yield* makeCaller("plain")
      const served = yield* makeServing(caller, "k", "plain")
      const start = yield* startOf(caller, served)
      yield* beginRequest(metering, start)
      yield* metering.end(endOf(start))
      const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
      assert.doesNotHaveAnyKeys(receipt, ["base_hf_revision", "adapter_hf_revision", "adapter_content_hash"])
    })
  )
})
