import { assert, layer } from "@effect/vitest"
import { DeploymentProgress } from "@seatrial/domain"
import { Deployments, Runs } from "@seatrial/store"
import { newModel } from "@seatrial/store/testing"
import { Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeCaller, Stage } from "./stage.ts"

const progressOf = (answer: Answer) => Schema.decodeUnknownSync(DeploymentProgress)(jsonOf(answer), { onExcessProperty: "error" })

layer(layerStage(), { excludeTestServices: true })("the progress of a deployment over HTTP", (it) => {
  it.effect("includes what it waits for, its place in the queue and the progress of its download", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const runs = yield* Runs
      const { caller, key, orgId } = yield* makeCaller()
      const { id } = yield* (yield* Deployments).create(newModel(caller, "first"))
      const get = Effect.map(call("GET", `/v1/deployments/${id}/progress`, { key }), progressOf)
      assert.deepInclude(yield* get, { deployment_id: id, status: "screening", message: "The deployment waits for the operator.", queue: null, download: null })
      yield* runs.enter({ id, orgId, from: "screening", to: "queued", reason: "Waits." })
      const queue = { waits_for: "capacity", place: 3 } as const
      yield* runs.recordProgress(id, orgId, {
        phase: "queued",
        message: "The deployment waits for 1 GPU of H100: 2 deployments go first.",
        queue,
        download: null
      })
      assert.deepInclude(yield* get, { status: "probing", message: "The deployment waits for 1 GPU of H100: 2 deployments go first.", queue })
    })
  )

  it.effect("is hidden from other organizations and from keys without the scope", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { caller, withKey } = yield* makeCaller()
      const stranger = yield* makeCaller()
      const { id } = yield* (yield* Deployments).create(newModel(caller, "first"))
      const path = `/v1/deployments/${id}/progress`
      assert.strictEqual((yield* call("GET", path, { key: stranger.key })).status, 404)
      assert.strictEqual((yield* call("GET", path, { key: (yield* withKey(["models:read"])).secret })).status, 403)
      assert.strictEqual((yield* call("GET", "/v1/deployments/nothing/progress", { key: (yield* withKey(["deployments:read"])).secret })).status, 404)
      assert.strictEqual((yield* call("POST", path, { key: stranger.key })).status, 405)
      assert.strictEqual((yield* call("GET", `${path}?limit=1`, { key: (yield* withKey(["deployments:read"])).secret })).status, 400)
    })
  )
})
