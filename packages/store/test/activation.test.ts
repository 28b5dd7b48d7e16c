import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Deployments, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { checks, engineDigest, engineImage, makeCaller, makeServing, newModel, walk } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("an activation", (it) => {
  it.effect("if a cancel and an activation race, exactly one wins", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("race-activate")
      const { orgId } = caller
      for (let round = 0; round < 5; round++) {
        const { id } = yield* deployments.create(newModel(caller, `k${round}`, `m${round}`))
        yield* walk(caller, id, "activating")
        const [cancelled, activated] = yield* Effect.all(
          [
            Effect.match(deployments.cancel(orgId, id, caller.userId), { onFailure: () => false, onSuccess: () => true }),
            runs.activate({ id, orgId, from: "activating" })
          ],
          { concurrency: "unbounded" }
        )
        assert.notStrictEqual(cancelled, activated)
        const run = Option.getOrThrow(yield* runs.observe(id))
        assert.strictEqual(run.activeRevisionId !== null, activated)
        assert.strictEqual(run.revision?.status, activated ? "active" : "draft")
      }
    })
  )

  it.effect("an activation supersedes the earlier revision, freezes the verification and is audited", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("supersede")
      const { orgId } = caller
      const first = yield* makeServing(caller, "k1")
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId: first.modelId, ref: null } }))
      yield* walk(caller, id, "activating")
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).activeRevisionId, first.revisionId)
      assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
      assert.isFalse(yield* runs.activate({ id, orgId, from: "activating" }))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.phase, run.revision?.status, run.activeRevisionId], ["activated", "active", run.revision?.id])
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(first.operation.id)).revision?.status, "superseded")
      const rows = yield* sql`
        SELECT verification, actor_kind, a.before, a.after ->> 'revision_id' AS after, a.after ->> 'engine_image' AS image, a.after ->> 'engine_digest' AS digest FROM revisions r, audit_events a
        WHERE r.org_id = ${orgId} AND r.id = ${run.revision?.id} AND a.org_id = ${orgId} AND a.action = 'activated'
        ORDER BY a.created_at DESC, a.id DESC LIMIT 1`
      assert.deepStrictEqual<unknown>(rows, [
        {
          verification: { checks: checks.checks, outputFingerprints: checks.fingerprints, fingerprintCard: checks.fingerprint_card },
          actor_kind: "system",
          before: { revision_id: first.revisionId },
          after: run.revision?.id,
          image: engineImage,
          digest: engineDigest
        }
      ])
      assert.isNotNull(Option.getOrThrow(yield* deployments.find(orgId, id)).revision?.verified_at)
    })
  )

  it.effect("a run with serve false ends verified and does not change the serving revision", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("candidate")
      const { orgId } = caller
      const first = yield* makeServing(caller, "k1")
      const target = { _tag: "Redeploy", modelId: first.modelId, ref: null } as const
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target, serve: false }))
      yield* walk(caller, id, "benchmarking")
      assert.isTrue(yield* runs.activate({ id, orgId, from: "benchmarking" }))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.phase, run.revision?.status, run.activeRevisionId], ["activated", "draft", first.revisionId])
      assert.isNotNull(Option.getOrThrow(yield* deployments.find(orgId, id)).revision?.verified_at)
      const serving = yield* deployments.create(newModel(caller, "k3", "", { target }))
      yield* walk(caller, serving.id, "benchmarking")
      assert.isFalse(yield* runs.activate({ id: serving.id, orgId, from: "benchmarking" }))
    })
  )

  it.effect("a revision whose checks did not pass is never activated", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("unchecked")
      const { id } = yield* deployments.create(newModel(caller, "k"))
      yield* walk(caller, id, "activating", { ...checks, passed: false })
      const exit = yield* Effect.exit(runs.activate({ id, orgId: caller.orgId, from: "activating" }))
      assert.strictEqual(exit._tag, "Failure")
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).phase, "activating")
    })
  )
})
