import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { BenchmarkKey } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { Deployments, ModelAdmin, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import {
  benchmark,
  capacityRow,
  checks,
  engineDigest,
  engineImage,
  facts,
  makeCaller,
  measured,
  newModel,
  screened,
  settings,
  speedRow
} from "./support/index.ts"

const key: BenchmarkKey = {
  commit: facts.commit,
  engine_version: "vllm-1",
  engine_digest: engineDigest,
  flags_sha256: "f",
  gpu_pool: "card",
  gpu_count: 1,
  tensor_parallel: 1,
  driver: null
}
const parts = { image_pull: 1, weights_to_node: null, process_to_loaded: 10, loaded_to_ready: 5, first_token: 0.5 }

layer(Layer.provideMerge(ModelAdmin.layerSql, layerStore), { excludeTestServices: true })("measurements of a trial", (it) => {
  it.effect("are returned with the model, with the median of the last five starts, and are compared with earlier ones of the same configuration", () =>
    Effect.gen(function* () {
      const [deployments, runs, models] = [yield* Deployments, yield* Runs, yield* ModelAdmin]
      const { caller } = yield* makeCaller("figures-own")
      const stranger = yield* makeCaller("figures-other")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "figures-a", "figures-a"))
      const { id: model_id } = Option.getOrThrow(yield* models.find(orgId, "figures-a"))
      assert.isTrue(Option.isNone(yield* models.figures(orgId, model_id)))
      yield* runs.recordScreening({ ...screened, id, orgId, engineVersion: "vllm-1" })
      const enter = (
        from: "screening" | "provisioning" | "booting" | "checking" | "measuring",
        to: "provisioning" | "booting" | "checking" | "measuring" | "benchmarking"
      ) => runs.enter({ id, orgId, from, to, reason: "Test" })
      yield* enter("screening", "provisioning")
      yield* enter("provisioning", "booting")
      yield* enter("booting", "checking")
      for (const [index, process_to_loaded] of [100, 10, 11, 12, 13, 14].entries()) {
        yield* runs.recordStart(id, orgId, { podUid: `pod-${index}`, kind: "warm", parts: { ...parts, process_to_loaded } })
      }
      // Only the first record of a pod counts: a later one comes after its first token.
      yield* runs.recordStart(id, orgId, { podUid: "pod-5", kind: "cold", parts })
      yield* runs.recordStart(id, stranger.caller.orgId, { podUid: "pod-6", kind: "cold", parts })
      // Some starts may have been recorded in the same millisecond.
      const sql = yield* PgClient.PgClient
      yield* sql`UPDATE engine_starts SET created_at = created_at + substr(pod_uid, 5)::int * interval '1 second' WHERE org_id = ${orgId}`
      yield* runs.recordEngineImage(id, orgId, { image: engineImage, digest: engineDigest })
      yield* runs.recordChecks(id, orgId, checks)
      yield* enter("checking", "measuring")
      yield* runs.recordMeasured(id, orgId, { ...measured, kv_layout: { reported: 2, exact: 1, differs: true } }, capacityRow)
      yield* enter("measuring", "benchmarking")
      assert.deepStrictEqual(yield* runs.earlierBenchmarks(orgId, key), [])
      yield* runs.recordBenchmark(id, orgId, { ...benchmark, key }, speedRow)

      const figures = Option.getOrThrow(yield* models.figures(orgId, model_id))
      assert.deepInclude(figures, { commit: facts.commit, engine_version: "vllm-1", status: "draft", host_class: settings.host_class })
      assert.deepStrictEqual(figures.benchmark, { ...benchmark, key })
      // The stored key is older than the name in the code; programs of both releases read it.
      assert.deepStrictEqual(figures.measured.kv_layout, { reported: 2, exact: 1, differs: true })
      assert.deepStrictEqual((yield* sql`SELECT measured -> 'kv_layout' AS layout FROM revisions WHERE org_id = ${orgId} AND measured IS NOT NULL`)[0], {
        layout: { told: 2, exact: 1, differs: true }
      })
      assert.deepStrictEqual(figures.starts, [{ kind: "warm", of: 5, median: { ...parts, process_to_loaded: 12 } }])
      assert.isTrue(Option.isNone(yield* models.figures(stranger.caller.orgId, model_id)))

      // A repeated record, for example after a lost response, has only one row.
      yield* runs.recordBenchmark(id, orgId, { ...benchmark, key }, speedRow)
      const detail = Option.getOrThrow(yield* deployments.find(orgId, id))
      assert.deepStrictEqual(detail.checks, [...checks.checks, capacityRow, speedRow])
      // If the second run measured nothing, the row of the first one is removed.
      yield* runs.recordBenchmark(id, orgId, { ...benchmark, key, missing: "time_limit" }, null)
      assert.deepStrictEqual(Option.getOrThrow(yield* deployments.find(orgId, id)).checks, [...checks.checks, capacityRow])
      yield* runs.recordBenchmark(id, orgId, { ...benchmark, key }, speedRow)

      assert.deepStrictEqual(yield* runs.earlierBenchmarks(orgId, key), [{ ...benchmark, key }])
      assert.deepStrictEqual(yield* runs.earlierBenchmarks(orgId, { ...key, driver: "580.65" }), [])
      assert.deepStrictEqual(yield* runs.earlierBenchmarks(stranger.caller.orgId, key), [])
    })
  )
})
