import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DeploymentId, type HostClass, ModelId, type OrgId, optionalNullable } from "@seatrial/domain"
import { HostClasses, ModelAdmin, Runs } from "@seatrial/store"
import { capabilities, estimate, settings } from "@seatrial/store/testing"
import { Effect, Layer, Ref, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeTenant, Stage, tinyFacts } from "./stage.ts"

const Operation = Schema.Struct({ id: DeploymentId, model_id: ModelId, status_url: Schema.String })
const operationOf = (answer: Answer) => Schema.decodeUnknownSync(Operation)(jsonOf(answer))
const ErrorBody = Schema.Struct({
  error: Schema.Struct({ type: Schema.String, code: Schema.String, message: Schema.String, param: optionalNullable(Schema.String) })
})
const errorOf = (answer: Answer) => Schema.decodeUnknownSync(ErrorBody)(jsonOf(answer)).error

const { commit, repo } = tinyFacts
const pinned = { kind: "model_hub", repo, ref: commit }

let keys = 0
const create = Effect.fnUntraced(function* (key: string, body: unknown, idempotencyKey = `key-${++keys}`) {
  const { call } = yield* Stage
  return yield* call("POST", "/v1/deployments", { key, body, headers: { "idempotency-key": idempotencyKey } })
})

const cpu: HostClass = {
  name: "cpu-small",
  runtimes: [{ runtime: "reference", image: "reference" }],
  gpu_pool: "simulated-small",
  gpu_count: 1,
  gpu_memory_bytes: 2 ** 30,
  price_per_gpu_hour_micros: "100000",
  simulated: true
}

/** The operator has read the repository of this run. */
const screen = Effect.fnUntraced(function* (orgId: OrgId, id: DeploymentId, facts = tinyFacts) {
  yield* (yield* Runs).recordScreening({ id, orgId, facts, settings, engineVersion: "reference-1", engineImage: "reference", estimate, capabilities })
})

layer(ModelAdmin.layerSql.pipe(Layer.provideMerge(layerStage())), { excludeTestServices: true })("a create that is refused", (it) => {
  it.effect("because the organization has deployed that commit before has the message of a preview, and does not bind the key", () =>
    Effect.gen(function* () {
      const { call, hub } = yield* Stage
      const { key, orgId } = yield* makeTenant()
      const other = yield* makeTenant()
      yield* (yield* HostClasses).replaceAll([cpu])
      const first = operationOf(yield* create(key, { model_name: "known", source: { ...pinned, ref: "main" } }))
      yield* screen(orgId, first.id)
      const serving = { max_context: 100_000 }
      const bodies = [
        { model_name: "again", source: pinned, serving },
        { model_id: first.model_id, ref: commit, serving }
      ]
      for (const body of bodies) {
        const refused = yield* create(key, body, "free")
        assert.strictEqual(refused.status, 422)
        assert.deepInclude(errorOf(refused), { type: "refused_error", code: "context_too_long", param: "serving.max_context" })
        assert.match(errorOf(refused).message, /supports up to 1024 tokens/u)
      }
      // A preview, which reads the hub, returns the same refusal.
      yield* Ref.set(hub, () => Effect.succeed(tinyFacts))
      const preview = yield* call("POST", "/v1/deployment-previews", { key, body: { source: pinned, serving } })
      assert.deepInclude(jsonOf(preview), { kind: "refused" })
      assert.include(preview.text, "context_too_long")

      // Screening decides what is not known at once: a branch, a redeploy that keeps its settings, and facts that only another organization has.
      assert.strictEqual((yield* create(key, { model_id: first.model_id, ref: "main", serving }, "free")).status, 201)
      assert.strictEqual((yield* create(key, { model_id: first.model_id, ref: commit })).status, 201)
      assert.strictEqual((yield* create(other.key, { model_name: "again", source: pinned, serving })).status, 201)
      assert.strictEqual((yield* create(key, { model_name: "again", source: pinned, serving: { max_context: 512 } })).status, 201)

      // Facts that another version has stored in an unknown format are not used either.
      const sql = yield* PgClient.PgClient
      yield* sql`UPDATE revisions SET facts = facts - 'config' WHERE org_id = ${orgId}`
      assert.strictEqual((yield* create(key, { model_name: "unread", source: pinned, serving })).status, 201)
    })
  )

  it.effect("because no host class can hold the model", () =>
    Effect.gen(function* () {
      const { key, orgId } = yield* makeTenant()
      yield* (yield* HostClasses).replaceAll([cpu])
      const first = operationOf(yield* create(key, { model_name: "large", source: { ...pinned, ref: "main" } }))
      yield* screen(orgId, first.id, { ...tinyFacts, weights_bytes: 2 ** 40 })
      const refused = yield* create(key, { model_name: "larger", source: pinned })
      assert.strictEqual(refused.status, 422)
      assert.deepInclude(errorOf(refused), { type: "refused_error", code: "does_not_fit" })
      yield* (yield* HostClasses).replaceAll([])
      assert.strictEqual((yield* create(key, { model_name: "larger", source: pinned })).status, 201)
    })
  )

  it.effect("for a deleted model returns model_deleted on a replay and not_found on a redeploy; its records stay and its name is free", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, orgId } = yield* makeTenant()
      const body = { model_name: "gone", source: { ...pinned, ref: "main" } }
      const first = operationOf(yield* create(key, body, "first"))
      yield* (yield* ModelAdmin).remove(orgId, first.model_id)

      const replayed = yield* create(key, body, "first")
      assert.strictEqual(replayed.status, 404)
      assert.deepInclude(errorOf(replayed), { type: "not_found_error", code: "model_deleted" })
      const redeployed = yield* create(key, { model_id: first.model_id })
      assert.deepStrictEqual([redeployed.status, errorOf(redeployed).code], [404, "not_found"])
      const run = yield* call("GET", first.status_url, { key })
      assert.deepInclude(jsonOf(run), { id: first.id, status: "cancelled" })
      const again = yield* create(key, body, "second")
      assert.strictEqual(again.status, 201)
      assert.notStrictEqual(operationOf(again).model_id, first.model_id)
      const changed = yield* create(key, { ...body, serve: false }, "first")
      assert.deepStrictEqual([changed.status, errorOf(changed).code], [409, "idempotency_key_reused"])
    })
  )
})
