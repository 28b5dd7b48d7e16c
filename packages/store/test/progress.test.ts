import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { RunProgress } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Deployments, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, newModel, walk } from "./support/index.ts"

const queued: RunProgress = { phase: "queued", message: "Waits for 1 GPU.", queue: { waits_for: "capacity", place: 3 }, download: null }
const download = { bytes: 3_221_225_472, total_bytes: 13_958_643_712, bytes_per_second: 112_000_000, seconds_left: null, stalled: true }

layer(layerStore, { excludeTestServices: true })("the progress of a deployment", (it) => {
  it.effect("is read as last recorded, by its own organization and by the operator", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("progress")
      const stranger = yield* makeCaller("stranger")
      const { id } = yield* deployments.create(newModel(caller, "k"))
      assert.isNull(Option.getOrThrow(yield* runs.observe(id)).progress)
      yield* walk(caller, id, "materializing")
      const materializing: RunProgress = { phase: "materializing", message: "Downloads.", queue: null, download }
      yield* runs.recordProgress(id, caller.orgId, { ...materializing, message: "Starts." })
      yield* runs.recordProgress(id, caller.orgId, materializing)
      const { updatedAt, ...shown } = Option.getOrThrow(yield* deployments.progress(caller.orgId, id))
      assert.deepStrictEqual<unknown>(shown, materializing)
      assert.deepStrictEqual<unknown>(Option.getOrThrow(yield* runs.observe(id)).progress, { ...materializing, at: Date.parse(updatedAt) })
      assert.isTrue(Option.isNone(yield* deployments.progress(stranger.caller.orgId, id)))
      yield* runs.recordProgress(id, stranger.caller.orgId, { ...materializing, message: "Not theirs." })
      assert.strictEqual(Option.getOrThrow(yield* deployments.progress(caller.orgId, id)).message, "Downloads.")
    })
  )

  it.effect("is the reason of the phase until progress is recorded, and the failure of a failed run", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("phases")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const message = Effect.map(deployments.progress(orgId, id), (progress) => Option.getOrThrow(progress).message)
      assert.strictEqual(yield* message, "The deployment waits for the operator.")
      yield* runs.recordProgress(id, orgId, queued)
      yield* runs.enter({ id, orgId, from: "screening", to: "waiting", reason: "Waits for an older run." })
      const waits = Option.getOrThrow(yield* deployments.progress(orgId, id))
      assert.deepInclude(waits, { phase: "waiting", message: "Waits for an older run.", queue: null })
      yield* runs.enter({ id, orgId, from: "waiting", to: "failed", reason: "access_required", failure: { code: "access_required", text: "It is gated." } })
      assert.strictEqual(yield* message, "access_required: It is gated.")
    })
  )

  it.effect("is recorded without a notification", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("quiet")
      const { id } = yield* deployments.create(newModel(caller, "k"))
      yield* sql`DELETE FROM outbox WHERE deployment_id = ${id}`
      yield* runs.recordProgress(id, caller.orgId, queued)
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM outbox WHERE deployment_id = ${id}`, [])
    })
  )
})
