import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Deployments, ModelAdmin, Runs } from "../src/index.ts"
import { resultColumns } from "../src/runs/resultColumns.ts"
import { layerStore } from "./stage.ts"
import { benchmark, capacityRow, checks, makeCaller, measured, newModel, screened, speedRow } from "./support/index.ts"

/** Columns of an untried revision that are null and hold no result of its trial. */
const withoutResult = [
  "adapter_content_hash",
  "base_hf_repo",
  "base_hf_revision",
  "engine_digest",
  "engine_image",
  "left_at",
  "sampling",
  "verification",
  "verified_at"
]

layer(Layer.provideMerge(ModelAdmin.layerSql, layerStore), { excludeTestServices: true })("node faults", (it) => {
  it.effect("are recorded once, avoided by the run permanently and by all runs for a day if a GPU failed, and a requeued run starts its trial over", () =>
    Effect.gen(function* () {
      const [deployments, runs, sql] = [yield* Deployments, yield* Runs, yield* PgClient.PgClient]
      const { caller } = yield* makeCaller("faults-own")
      const stranger = yield* makeCaller("faults-other")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "faults-a", "faults-a"))
      const other = yield* deployments.create(newModel(stranger.caller, "faults-b", "faults-b"))
      yield* runs.recordScreening({ ...screened, id, orgId, engineVersion: "vllm-1" })
      const enter = (from: Parameters<typeof runs.enter>[0]["from"], to: Parameters<typeof runs.enter>[0]["to"]) =>
        runs.enter({ id, orgId, from, to, reason: "Test" })
      const trial = Effect.gen(function* () {
        yield* enter("provisioning", "booting")
        yield* enter("booting", "checking")
        yield* runs.recordChecks(id, orgId, checks, { likelihood: [[-1]] })
        yield* enter("checking", "measuring")
        yield* runs.recordMeasured(id, orgId, measured, capacityRow)
        yield* enter("measuring", "benchmarking")
        yield* runs.recordBenchmark(id, orgId, benchmark, speedRow)
      })
      yield* enter("screening", "provisioning")
      const revisionRow = Effect.map(
        sql<{ readonly row: Readonly<Record<string, unknown>> }>`SELECT to_jsonb(r) - 'updated_at' AS row FROM revisions r WHERE org_id = ${orgId}`,
        (rows) => rows[0]?.row ?? {}
      )
      const untried = yield* revisionRow
      assert.sameMembers(
        Object.keys(untried).filter((column) => untried[column] === null),
        [...resultColumns, ...withoutResult],
        "a new column with a result of the trial is a result column"
      )
      yield* trial
      yield* runs.noteNodeFault(id, orgId, { node: "node-a", code: "output_garbage" })
      yield* runs.noteNodeFault(id, orgId, { node: "node-a", code: "output_garbage" })
      yield* runs.noteNodeFault(id, orgId, { node: "node-b", code: "gpu_fault" })
      yield* runs.noteNodeFault(id, orgId, { node: "node-a", code: "node_slow" })
      yield* runs.noteNodeFault(id, stranger.caller.orgId, { node: "node-c", code: "gpu_fault" })
      const observed = Option.getOrThrow(yield* runs.observe(id))
      // Two faults in one millisecond are ordered by node.
      assert.sameMembers(
        observed.nodeFaults.map(({ code, node }) => `${code} ${node}`),
        ["output_garbage node-a", "gpu_fault node-b", "node_slow node-a"]
      )
      assert.deepStrictEqual(yield* runs.avoidedNodes(id, orgId), ["node-a", "node-b"])
      assert.deepStrictEqual(yield* runs.avoidedNodes(other.id, stranger.caller.orgId), ["node-b"])
      yield* sql`UPDATE node_faults SET at = at - interval '25 hours' WHERE org_id = ${orgId}`
      assert.deepStrictEqual(yield* runs.avoidedNodes(id, orgId), ["node-a", "node-b"])
      assert.deepStrictEqual(yield* runs.avoidedNodes(other.id, stranger.caller.orgId), [])
      // A repeated fault has the time of its last occurrence.
      yield* runs.noteNodeFault(id, orgId, { node: "node-b", code: "gpu_fault" })
      assert.deepStrictEqual(yield* runs.avoidedNodes(other.id, stranger.caller.orgId), ["node-b"])

      assert.isTrue(yield* enter("benchmarking", "queued"))
      const again = Option.getOrThrow(yield* runs.observe(id))
      assert.strictEqual(again.requeues, 1)
      assert.deepStrictEqual(yield* revisionRow, untried)
      yield* enter("queued", "provisioning")
      // A return without GPUs is no loss, however often it happens.
      for (let returns = 0; returns < 4; returns++) {
        assert.isTrue(yield* runs.enter({ id, orgId, from: "provisioning", to: "queued", reason: "", hadNoGpus: true }))
        yield* enter("queued", "provisioning")
      }
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).requeues, 1)
      yield* trial
      assert.isNotNull(Option.getOrThrow(yield* runs.observe(id)).revision?.benchmark)
    })
  )
})
