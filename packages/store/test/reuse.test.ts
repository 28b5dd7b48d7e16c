import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Commit, type ModelId, startsDiffer } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { type Caller, Deployments, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { checks, estimate, facts, makeCaller, newModel, screened, settings, walk } from "./support/index.ts"

let keys = 0
const redeploy = Effect.fnUntraced(function* (caller: Caller, modelId: ModelId, serve = true) {
  const deployments = yield* Deployments
  return yield* deployments.create(newModel(caller, `again-${++keys}`, "", { target: { _tag: "Redeploy", modelId, ref: null }, serve }))
})

const observe = Effect.fnUntraced(function* (id: Parameters<Runs["Service"]["observe"]>[0]) {
  return Option.getOrThrow(yield* (yield* Runs).observe(id))
})

/** A model whose first run verified a revision that does not serve. */
const candidate = Effect.fnUntraced(function* (slug: string) {
  const deployments = yield* Deployments
  const runs = yield* Runs
  const { caller } = yield* makeCaller(slug)
  const { id, modelId } = yield* deployments.create(newModel(caller, "first", "tiny", { serve: false }))
  yield* walk(caller, id, "benchmarking", checks, settings)
  assert.isTrue(yield* runs.activate({ id, orgId: caller.orgId, from: "benchmarking" }))
  const { revision } = yield* observe(id)
  if (revision === null) return yield* Effect.die("no revision")
  return { caller, orgId: caller.orgId, id, modelId, revisionId: revision.id }
})

layer(layerStore, { excludeTestServices: true })("a redeploy", (it) => {
  it.effect("resets the flags that followed from the previous commit, and keeps all other settings and who chose them", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("again-flags")
      const orgId = caller.orgId
      const { id, modelId } = yield* deployments.create(newModel(caller, "k1"))
      const vllm = { ...settings, runtime: "vllm", host_class: "cpu-small" } as const
      const flags = { max_num_seqs: 8, generation_config: "vllm", reasoning_parser: "qwen3", tool_call_parser: "hermes" }
      const chosen_by = {
        "engine_flags.max_num_seqs": "default",
        "engine_flags.generation_config": "model",
        "engine_flags.reasoning_parser": "request",
        "engine_flags.tool_call_parser": "model"
      } as const
      const withChoices = { ...estimate, chosen_by }
      yield* runs.recordScreening({ ...screened, id, orgId, settings: { ...vllm, engine_flags: flags }, estimate: withChoices })
      const again = Effect.fnUntraced(function* (key: string) {
        const operation = yield* deployments.create(newModel(caller, key, "", { target: { _tag: "Redeploy", modelId, ref: "v2" } }))
        const run = Option.getOrThrow(yield* runs.observe(operation.id))
        yield* runs.recordScreening({ ...screened, id: operation.id, orgId, settings: { ...vllm, max_context: 512 } })
        return [run.servingRequest, run.keptChoices]
      })
      const retained = { ...vllm, engine_flags: { max_num_seqs: 8, reasoning_parser: "qwen3" } }
      assert.isNull(Option.getOrThrow(yield* runs.observe(id)).keptChoices)
      assert.deepStrictEqual<unknown>(yield* again("k2"), [retained, chosen_by])
      // The serving revision takes precedence over the last run.
      yield* (yield* PgClient.PgClient)`UPDATE models SET active_revision_id = (SELECT revision_id FROM deployments WHERE id = ${id}) WHERE id = ${modelId}`
      assert.deepStrictEqual<unknown>(yield* again("k3"), [retained, chosen_by])
      // Settings of a caller have no recorded choices.
      const changed = yield* deployments.create(newModel(caller, "k4", "", { target: { _tag: "Redeploy", modelId, ref: null }, serving: { max_context: 256 } }))
      assert.isNull(Option.getOrThrow(yield* runs.observe(changed.id)).keptChoices)
    })
  )

  it.effect("of a verified candidate goes live with its revision, and the engine remains the first run's", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller, id: first, modelId, orgId, revisionId } = yield* candidate("reuse-draft")
      const verified = Option.getOrThrow(yield* (yield* Deployments).find(orgId, first)).revision?.verified_at
      const { id } = yield* redeploy(caller, modelId)
      assert.isTrue(yield* runs.recordScreening({ ...screened, id, orgId }))
      assert.deepInclude(yield* observe(id), { engineRun: first, reusedBy: [] })
      assert.deepInclude(yield* observe(first), { engineRun: first, reusedBy: [id] })
      assert.isFalse(yield* runs.activate({ id, orgId, from: "screening" }))
      assert.isTrue(yield* runs.enter({ id, orgId, from: "screening", to: "activating", reason: "Test" }))
      assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
      const run = yield* observe(id)
      assert.deepStrictEqual([run.phase, run.revision?.status, run.activeRevisionId, run.revision?.id], ["activated", "active", revisionId, revisionId])
      assert.strictEqual(Option.getOrThrow(yield* (yield* Deployments).find(orgId, id)).revision?.verified_at, verified)
      assert.deepStrictEqual((yield* observe(first)).reusedBy, [])
    })
  )

  it.effect("that goes live counts as a use of a revision that may idle, even if its candidate is old", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller } = yield* makeCaller("reuse-idle")
      const orgId = caller.orgId
      const held = { ...settings, hold_seconds: 600 }
      const { id: first, modelId } = yield* (yield* Deployments).create(newModel(caller, "first", "tiny", { serve: false }))
      yield* walk(caller, first, "benchmarking", checks, held)
      yield* runs.activate({ id: first, orgId, from: "benchmarking" })
      assert.isNull((yield* observe(first)).lastUsedAt)
      const { id } = yield* redeploy(caller, modelId)
      yield* runs.recordScreening({ ...screened, id, orgId, settings: held })
      yield* runs.enter({ id, orgId, from: "screening", to: "activating", reason: "Test" })
      assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
      const { endedAt } = yield* observe(id)
      assert.isNotNull(endedAt)
      assert.deepInclude(yield* observe(first), { engineRun: first, lastUsedAt: endedAt })
    })
  )

  it.effect("of the serving revision ends with the same revision, and with serve false it ends in screening", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller, id: first, modelId, orgId, revisionId } = yield* candidate("reuse-active")
      for (const [serve, from] of [
        [false, "screening"],
        [true, "activating"],
        [true, "activating"],
        [false, "screening"]
      ] as const) {
        const { id } = yield* redeploy(caller, modelId, serve)
        yield* runs.recordScreening({ ...screened, id, orgId })
        const before = yield* observe(id)
        if (serve) yield* runs.enter({ id, orgId, from: "screening", to: "activating", reason: "Test" })
        assert.isTrue(yield* runs.activate({ id, orgId, from }))
        const run = yield* observe(id)
        assert.deepStrictEqual([run.revision?.id, run.engineRun], [revisionId, first])
        assert.strictEqual(run.revision?.status, serve ? "active" : before.revision?.status)
        assert.strictEqual(run.activeRevisionId, serve ? revisionId : before.activeRevisionId)
      }
    })
  )

  it.effect("is tried again if the serving engine gives different answers and gets no requests, and takes over its GPUs", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller, id: first, modelId, orgId, revisionId } = yield* candidate("reuse-differs")
      const live = yield* redeploy(caller, modelId)
      yield* runs.recordScreening({ ...screened, id: live.id, orgId })
      yield* runs.enter({ id: live.id, orgId, from: "screening", to: "activating", reason: "Test" })
      assert.isTrue(yield* runs.activate({ id: live.id, orgId, from: "activating" }))
      const read = Effect.fnUntraced(function* () {
        const { id } = yield* redeploy(caller, modelId)
        yield* runs.recordScreening({ ...screened, id, orgId })
        const { predecessor, revision } = yield* observe(id)
        yield* runs.enter({ id, orgId, from: "screening", to: "cancelled", reason: "Test" })
        return [revision?.id === revisionId, predecessor?.run ?? null, predecessor?.differs ?? null]
      })
      const endpoints = [{ url: "http://10.0.0.1:8000", pod: "pod-1" }]
      // One node reported the difference, and another serves.
      yield* runs.noteNodeFault(first, orgId, { node: "node-1", code: "fingerprints_differ" })
      assert.deepStrictEqual(yield* read(), [true, null, null])
      yield* runs.noteNodeFault(first, orgId, { node: "node-2", code: startsDiffer })
      assert.deepStrictEqual(yield* read(), [false, first, true])
      // The engine gives the verified answers again, as after its pod was deleted.
      yield* runs.publishEndpoints(first, orgId, endpoints)
      assert.deepStrictEqual(yield* read(), [true, null, null])
      // A restart or idle engine is no evidence against it, and its nodes are still avoided.
      yield* runs.publishEndpoints(first, orgId, [])
      assert.deepStrictEqual(yield* read(), [true, null, null])
      assert.deepStrictEqual(
        (yield* observe(first)).nodeFaults.map(({ code, node }) => [node, code]),
        [
          ["node-1", "fingerprints_differ"],
          ["node-2", "fingerprints_differ"]
        ]
      )
      yield* runs.noteNodeFault(first, orgId, { node: "node-2", code: startsDiffer })
      assert.deepStrictEqual(yield* read(), [false, first, true])
    })
  )

  it.effect("creates a new revision if commit, engine version, image, GPU type or settings differ", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller, modelId, orgId, revisionId } = yield* candidate("no-reuse")
      const variants = [
        { ...screened, facts: { ...facts, commit: Commit.make("1".repeat(40)) } },
        { ...screened, engineVersion: "reference-2" },
        { ...screened, engineImage: "registry.example/reference:2" },
        { ...screened, estimate: { ...estimate, gpu_pool: "Other-GPU" } },
        { ...screened, estimate: { ...estimate, gpu_count: 2 } },
        { ...screened, settings: { ...settings, engine_flags: { max_num_seqs: 4 } } }
      ]
      for (const other of [...variants, screened]) {
        const { id } = yield* redeploy(caller, modelId)
        yield* runs.recordScreening({ ...other, id, orgId })
        const run = yield* observe(id)
        assert.strictEqual(run.revision?.id === revisionId, other === screened)
        yield* runs.enter({ id, orgId, from: "screening", to: "cancelled", reason: "Test" })
      }
    })
  )

  it.effect("creates a new revision while an older run is unfinished, after a failed reuse, and instead of a superseded one", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { caller, modelId, orgId, revisionId } = yield* candidate("careful-reuse")
      const reads = Effect.fnUntraced(function* () {
        const { id } = yield* redeploy(caller, modelId)
        yield* runs.recordScreening({ ...screened, id, orgId })
        const { revision } = yield* observe(id)
        return { id, reused: revision?.id === revisionId }
      })
      const first = yield* reads()
      const behind = yield* reads()
      assert.deepStrictEqual([first.reused, behind.reused], [true, false])
      yield* runs.enter({ id: behind.id, orgId, from: "screening", to: "cancelled", reason: "Test" })
      yield* runs.enter({ id: first.id, orgId, from: "screening", to: "failed", reason: "Test", failure: { code: "weights_missing", text: "Gone." } })
      const healed = yield* reads()
      assert.isFalse(healed.reused)
      yield* walk(caller, healed.id, "activating", checks, settings)
      assert.isTrue(yield* runs.activate({ id: healed.id, orgId, from: "activating" }))

      const newer = yield* redeploy(caller, modelId)
      yield* walk(caller, newer.id, "activating")
      assert.isTrue(yield* runs.activate({ id: newer.id, orgId, from: "activating" }))
      const superseded = (yield* observe(healed.id)).revision
      assert.strictEqual(superseded?.status, "superseded")
      const again = yield* redeploy(caller, modelId)
      yield* runs.recordScreening({ ...screened, id: again.id, orgId })
      assert.notInclude([superseded?.id, revisionId], (yield* observe(again.id)).revision?.id)
    })
  )
})
