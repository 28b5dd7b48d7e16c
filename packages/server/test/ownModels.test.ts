import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { OrgId } from "@seatrial/domain"
import { Billing, Deployments, Runs } from "@seatrial/store"
import { makeServing, newModel } from "@seatrial/store/testing"
import { Effect, Option, Schedule, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeCaller, Stage } from "./stage.ts"

/** The state of the engines of a model about which the operator has recorded nothing. */
const none = { granted: 0, ready: 0, limit: null }

const Failure = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })
const failureOf = (answer: Answer) => Schema.decodeUnknownSync(Failure)(jsonOf(answer)).error

/** The audit events of users about the organization's models, oldest first. */
const audited = Effect.fnUntraced(function* (orgId: OrgId) {
  const sql = yield* PgClient.PgClient
  return yield* sql`
    SELECT actor_kind, actor_user_id, action, before, after FROM audit_events
    WHERE org_id = ${orgId} AND resource_type = 'model_config' AND (after IS NULL OR NOT jsonb_exists(after, 'deployment_id')) AND actor_kind = 'user'
    ORDER BY created_at, id`
})

const serving = Effect.fnUntraced(function* (name = "tiny") {
  const tenant = yield* makeCaller()
  const { modelId, operation, revisionId } = yield* makeServing(tenant.caller, "k1", name)
  const { call } = yield* Stage
  const status = Effect.map(
    call("GET", `/v1/org/models/${modelId}`, { key: tenant.key }),
    (answer) => Schema.decodeUnknownSync(Schema.Struct({ status: Schema.String }))(jsonOf(answer)).status
  )
  return { ...tenant, call, modelId, operation, revisionId, status }
})

layer(layerStage(), { excludeTestServices: true })("an organization's own model over HTTP", (it) => {
  it.effect("is disabled and enabled by name or ID, idempotently, and each change is audited once with its user", () =>
    Effect.gen(function* () {
      const { call, key, modelId, orgId, revisionId, slug, status, userId } = yield* serving()
      for (const model of ["tiny", modelId, `${slug}%2Ftiny`]) {
        const answer = yield* call("POST", `/v1/models/${model}/disable`, { key })
        assert.deepStrictEqual([answer.status, answer.text], [204, ""])
        assert.strictEqual(yield* status, "disabled")
      }
      for (const body of [undefined, {}]) assert.strictEqual((yield* call("POST", "/v1/models/tiny/enable", { key, body })).status, 204)
      assert.strictEqual(yield* status, "active")
      const by = { actor_kind: "user", actor_user_id: userId, action: "updated" }
      assert.deepStrictEqual<unknown>(yield* audited(orgId), [
        { ...by, before: { status: "active" }, after: { status: "disabled", revision_id: revisionId } },
        { ...by, before: { status: "disabled" }, after: { status: "active", revision_id: revisionId } }
      ])
    })
  )

  it.effect("is not enabled while the organization may not spend, because its engine costs money", () =>
    Effect.gen(function* () {
      const { call, key, orgId } = yield* serving()
      yield* (yield* Billing).setSpendLimit(orgId, { day: 0n })
      // The server applies a limit when it is notified.
      const refused = yield* Effect.repeat(call("POST", "/v1/models/tiny/enable", { key }), {
        until: ({ status }) => status !== 204,
        schedule: Schedule.spaced("20 millis")
      })
      assert.deepStrictEqual([refused.status, failureOf(refused).code], [402, "spend_limit_reached"])
      assert.strictEqual((yield* call("POST", "/v1/models/tiny/disable", { key })).status, 204)
    })
  )

  it.effect("is scaled by name or ID, and each change is audited once with its user", () =>
    Effect.gen(function* () {
      const { call, key, modelId, orgId, slug, userId } = yield* serving()
      const path = `/v1/models/${slug}%2Ftiny/scaling`
      assert.deepStrictEqual(jsonOf(yield* call("GET", path, { key })), { replicas: 1, status: none })
      for (const model of ["tiny", modelId]) {
        const answer = yield* call("PUT", `/v1/models/${model}/scaling`, { key, body: { replicas: 3 } })
        assert.deepStrictEqual([answer.status, jsonOf(answer)], [200, { replicas: 3 }])
      }
      assert.deepStrictEqual(jsonOf(yield* call("GET", path, { key })), { replicas: 3, status: none })
      assert.deepStrictEqual<unknown>(yield* audited(orgId), [
        { actor_kind: "user", actor_user_id: userId, action: "updated", before: { replicas: 1 }, after: { replicas: 3 } }
      ])
      const Param = Schema.Struct({ error: Schema.Struct({ code: Schema.String, param: Schema.NullOr(Schema.String) }) })
      const wrong: ReadonlyArray<readonly [body: unknown, param: string | null]> = [
        [{ replicas: 0 }, "replicas"],
        [{ replicas: 65 }, "replicas"],
        [{ replicas: 1.5 }, "replicas"],
        [{ replicas: "2" }, "replicas"],
        [{}, "replicas"],
        [{ replicas: 2, max: 4 }, "max"],
        [{ min_replicas: 2, max_replicas: 2 }, "min_replicas"],
        [{ min_replicas: 1, max_replicas: 65 }, "max_replicas"],
        [{ min_replicas: 1, max_replicas: 2, target: 2 }, "target"],
        [{ min_replicas: 1 }, "max_replicas"],
        [{ replicas: 2, min_replicas: 1, max_replicas: 2 }, "replicas"],
        [undefined, null]
      ]
      for (const [body, param] of wrong) {
        const answer = yield* call("PUT", path, { key, ...(body === undefined ? {} : { body }) })
        assert.deepStrictEqual([answer.status, Schema.decodeUnknownSync(Param)(jsonOf(answer)).error], [400, { code: "invalid_body", param }])
      }
      assert.deepStrictEqual(jsonOf(yield* call("GET", path, { key })), { replicas: 3, status: none })
    })
  )

  it.effect("is not scaled if its ModelDeployment sets another number, and the answer names the object", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { call, key, modelId, operation, orgId } = yield* serving()
      yield* sql`
        INSERT INTO applied_resources (org_id, namespace, name, uid, generation, spec_hash, model_id, names_model, deployment_id, replicas, created_at, updated_at)
        VALUES (${orgId}, 'team', ${modelId}, 'u', 1, ${"a".repeat(64)}, ${modelId}, false, ${operation.id}, 1, now(), now())`
      const answer = yield* call("PUT", "/v1/models/tiny/scaling", { key, body: { replicas: 3 } })
      const { code, message } = failureOf(answer)
      assert.deepStrictEqual([answer.status, code], [409, "model_managed"])
      assert.include(message, `kubectl -n team scale modeldeployment ${modelId} --replicas=N`)
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/models/tiny/scaling", { key })), { replicas: 1, status: none })
      yield* sql`UPDATE applied_resources SET replicas = NULL WHERE org_id = ${orgId}`
      assert.strictEqual((yield* call("PUT", "/v1/models/tiny/scaling", { key, body: { replicas: 3 } })).status, 200)
    })
  )

  it.effect("is scaled only by its organization", () =>
    Effect.gen(function* () {
      const { call, key, modelId } = yield* serving()
      const stranger = yield* makeCaller()
      for (const model of ["tiny", modelId]) {
        assert.strictEqual((yield* call("GET", `/v1/models/${model}/scaling`, { key: stranger.key })).status, 404)
        assert.strictEqual((yield* call("PUT", `/v1/models/${model}/scaling`, { key: stranger.key, body: { replicas: 2 } })).status, 404)
      }
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/models/tiny/scaling", { key })), { replicas: 1, status: none })
    })
  )

  it.effect("shows how many engines it has and what limits them, as the operator records it", () =>
    Effect.gen(function* () {
      const { call, key, modelId, operation, orgId } = yield* serving()
      const runs = yield* Runs
      const engines = { granted: 2, ready: 1, limit: "organization_limit" as const }
      yield* runs.recordEngines(modelId, orgId, engines)
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/models/tiny/scaling", { key })), { replicas: 1, status: engines })
      assert.deepStrictEqual(Option.getOrThrow(yield* runs.observe(operation.id)).engines, engines)
      yield* runs.recordEngines(modelId, (yield* makeCaller()).orgId, { ...engines, granted: 9 })
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/models/tiny/scaling", { key })), { replicas: 1, status: engines })
    })
  )

  it.effect("is deleted once: its unfinished deployment is canceled, its engine ends and its name is free", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const { call, caller, key, modelId, operation, orgId, revisionId } = yield* serving()
      const unfinished = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      yield* sql`DELETE FROM outbox WHERE org_id = ${orgId}`
      assert.strictEqual((yield* call("DELETE", "/v1/models/tiny", { key })).status, 204)
      for (const path of ["/v1/models/tiny", `/v1/models/${modelId}`]) assert.strictEqual((yield* call("DELETE", path, { key })).status, 404)
      assert.strictEqual((yield* call("GET", `/v1/org/models/${modelId}`, { key })).status, 404)
      assert.strictEqual(Option.getOrThrow(yield* deployments.find(orgId, unfinished.id)).status, "cancelled")
      const work = yield* sql`SELECT DISTINCT deployment_id FROM outbox WHERE org_id = ${orgId} ORDER BY 1`
      assert.deepStrictEqual<unknown>(
        work.map(({ deployment_id }) => deployment_id),
        [operation.id, unfinished.id].sort()
      )
      const before = { slug: "tiny", status: "active", visibility: "private", hf_repo: "seatrial/tiny-chat", revision_id: revisionId }
      assert.deepInclude((yield* audited(orgId)).at(-1), { action: "deleted", before, after: null })
      assert.notStrictEqual((yield* deployments.create(newModel(caller, "k3", "tiny"))).modelId, modelId)
    })
  )

  it.effect("whose only deployment failed cannot be disabled, and can be deleted to free its name", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller, key, orgId } = yield* makeCaller()
      const { call } = yield* Stage
      const { id } = yield* deployments.create(newModel(caller, "k1", "typo"))
      yield* (yield* Runs).enter({ id, orgId, from: "screening", to: "failed", reason: "no", failure: { code: "repository_not_found", text: "No." } })
      const body = { model_name: "typo", source: { kind: "model_hub", repo: "seatrial/tiny-chat" } }
      const create = (idempotencyKey: string) => call("POST", "/v1/deployments", { key, body, headers: { "idempotency-key": idempotencyKey } })
      assert.include(failureOf(yield* create("k2")).message, "DELETE /v1/models/typo")
      for (const change of ["disable", "enable"]) {
        const answer = yield* call("POST", `/v1/models/typo/${change}`, { key })
        assert.deepStrictEqual([answer.status, failureOf(answer).code], [409, "model_not_activated"])
        assert.match(failureOf(answer).message, /Deploy it again with its model_id, or delete it\.$/)
      }
      assert.strictEqual((yield* call("DELETE", "/v1/models/typo", { key })).status, 204)
      assert.strictEqual((yield* create("k3")).status, 201)
    })
  )

  it.effect("can be changed only by its organization, even if it is published, and only with models:write", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { call, modelId, orgId, status, withKey } = yield* serving("shared")
      yield* sql`UPDATE models SET visibility = 'public' WHERE org_id = ${orgId} AND id = ${modelId}`
      const stranger = yield* makeCaller()
      const changes = (model: string) =>
        [
          ["POST", `/v1/models/${model}/disable`],
          ["POST", `/v1/models/${model}/enable`],
          ["DELETE", `/v1/models/${model}`]
        ] as const
      for (const model of ["shared", modelId, "%00", "a%2Fb", "x".repeat(500)]) {
        for (const [method, path] of changes(model)) assert.strictEqual((yield* call(method, path, { key: stranger.key })).status, 404, path)
      }
      const reader = yield* withKey(["models:read", "deployments:write", "inference:write"])
      for (const [method, path] of changes("shared")) assert.strictEqual((yield* call(method, path, { key: reader.secret })).status, 403)
      assert.strictEqual(yield* status, "active")
    })
  )

  it.effect("that a ModelDeployment manages can be disabled but not deleted, because it would be deployed again", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { call, key, modelId, operation, orgId, status } = yield* serving()
      yield* sql`
        INSERT INTO applied_resources (org_id, namespace, name, uid, generation, spec_hash, model_id, names_model, deployment_id, created_at, updated_at)
        VALUES (${orgId}, 'team-a', 'tiny', 'uid', 1, 'hash', ${modelId}, false, ${operation.id}, now(), now())`
      const answer = yield* call("DELETE", "/v1/models/tiny", { key })
      assert.deepStrictEqual([answer.status, failureOf(answer).code], [409, "model_managed"])
      assert.include(failureOf(answer).message, "kubectl -n team-a delete modeldeployment tiny")
      assert.strictEqual(yield* status, "active")
      assert.strictEqual((yield* call("POST", "/v1/models/tiny/disable", { key })).status, 204)
      assert.strictEqual(yield* status, "disabled")
    })
  )

  it.effect("cannot be changed in the org family, which is read-only", () =>
    Effect.gen(function* () {
      const { call, key, modelId } = yield* serving()
      for (const [method, path] of [
        ["DELETE", `/v1/org/models/${modelId}`],
        ["PUT", `/v1/org/models/${modelId}`],
        ["PATCH", `/v1/models/${modelId}/disable`]
      ] as const)
        assert.strictEqual((yield* call(method, path, { key })).status, 405)
      assert.strictEqual((yield* call("POST", `/v1/org/models/${modelId}/disable`, { key })).status, 404)
      assert.strictEqual((yield* call("POST", "/v1/models/tiny/disable", { key, body: { force: true } })).status, 400)
      assert.strictEqual((yield* call("DELETE", "/v1/models/tiny?force=true", { key })).status, 400)
    })
  )
})
