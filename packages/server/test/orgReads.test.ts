import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { AuditEventList, OrgModelList } from "@seatrial/api"
import { AuditEvent, OrgModel, zeroPrices } from "@seatrial/domain"
import { Administrator, Billing, Deployments, Runs } from "@seatrial/store"
import { facts, newModel, walk } from "@seatrial/store/testing"
import { Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeCaller, Stage } from "./stage.ts"

/** The record of a response, with exactly the fields of the schema. */
const decode =
  <A>(schema: Schema.Codec<A, unknown>) =>
  (answer: Answer): A =>
    Schema.decodeUnknownSync(schema)(jsonOf(answer), { onExcessProperty: "error" })
const modelOf = decode(OrgModel)
const modelsOf = (answer: Answer) => decode(OrgModelList)(answer).data
const eventsOf = (answer: Answer) => decode(AuditEventList)(answer).data

layer(layerStage(), { excludeTestServices: true })("over the wire", (it) => {
  it.effect("a model shows its serving revision, and its commit as soon as one is known", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller, key, orgId } = yield* makeCaller()
      const first = yield* deployments.create(newModel(caller, "first"))
      const path = `/v1/org/models/${first.modelId}`
      const get = Effect.map(call("GET", path, { key }), modelOf)

      const fresh = yield* get
      assert.deepInclude(fresh, {
        id: first.modelId,
        slug: "tiny",
        display_name: "tiny",
        hf_repo: "seatrial/tiny-chat",
        status: "pending",
        visibility: "private"
      })
      assert.deepInclude(fresh, { hf_revision: "", revision: null })

      yield* walk(caller, first.id, "activating")
      assert.deepInclude(yield* get, { status: "pending", hf_revision: facts.commit, revision: null })

      yield* runs.activate({ id: first.id, orgId, from: "activating" })
      const serving = yield* get
      assert.deepInclude(serving, { status: "active", hf_revision: facts.commit })
      assert.deepInclude(serving.revision, {
        status: "active",
        hf_revision: facts.commit,
        dtype: "float32",
        quantization: "none",
        max_model_len: 2_048,
        engine: "reference",
        engine_version: "reference-1",
        gpu_pool: "Simulated-GPU",
        gpu_count: 1,
        prices: zeroPrices
      })
      assert.isString(serving.revision?.verified_at)

      // A candidate does not change the model, even if it has another commit.
      const candidate = yield* deployments.create({
        ...newModel(caller, "candidate"),
        target: { _tag: "Redeploy", modelId: first.modelId, ref: null },
        serve: false
      })
      yield* walk(caller, candidate.id, "benchmarking")
      yield* sql`UPDATE revisions SET hf_revision = ${"f".repeat(40)} WHERE org_id = ${orgId} AND model_id = ${first.modelId} AND status = 'draft'`
      assert.deepStrictEqual(yield* get, serving)

      const listed = yield* call("GET", "/v1/org/models", { key })
      assert.deepStrictEqual(modelsOf(listed), [serving])
      assert.strictEqual(listed.text, `{"object":"list","data":[${(yield* call("GET", path, { key })).text}],"next_cursor":null}`)

      const second = yield* deployments.create(newModel(caller, "second", "other"))
      assert.deepStrictEqual(
        modelsOf(yield* call("GET", "/v1/org/models", { key })).map(({ id }) => id),
        [second.modelId, first.modelId]
      )

      yield* sql`UPDATE models SET deleted_at = now() WHERE org_id = ${orgId} AND id = ${first.modelId}`
      assert.strictEqual((yield* call("GET", path, { key })).status, 404)
      assert.deepStrictEqual(
        modelsOf(yield* call("GET", "/v1/org/models", { key })).map(({ id }) => id),
        [second.modelId]
      )
    })
  )

  it.effect("q matches part of the slug, name or repository case-insensitively, without wildcards", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* PgClient.PgClient
      const { key, orgId } = yield* makeCaller()
      const models = [
        ["a-1", "100% Sure", "acme/one"],
        ["a_2", "Back\\slash", "Acme/Two"],
        ["a.3", "Ärger", "acme/three_3"]
      ] as const
      for (const [index, [slug, name, repo]] of models.entries()) {
        const at = new Date(1_700_000_000_000 + index)
        yield* sql`
          INSERT INTO models (id, org_id, slug, display_name, hf_repo, created_at, updated_at)
          VALUES (${`mdl_${orgId.slice(4, -1)}${index}`}, ${orgId}, ${slug}, ${name}, ${repo}, ${at}, ${at})`
      }
      const searches: ReadonlyArray<readonly [q: string, slugs: ReadonlyArray<string>]> = [
        ["a", ["a.3", "a_2", "a-1"]],
        ["", ["a.3", "a_2", "a-1"]],
        ["%", ["a-1"]],
        ["%%", []],
        ["0% s", ["a-1"]],
        ["_", ["a.3", "a_2"]],
        ["\\", ["a_2"]],
        ["\\\\", []],
        ["ACME/T", ["a.3", "a_2"]],
        ["äRGER", ["a.3"]],
        ["A-1", ["a-1"]],
        [" ", ["a-1"]],
        ["acme%", []],
        ["100% Sure ", []]
      ]
      for (const [q, slugs] of searches) {
        const answer = yield* call("GET", `/v1/org/models?q=${encodeURIComponent(q)}`, { key })
        assert.deepStrictEqual(
          modelsOf(answer).map(({ slug }) => slug),
          slugs,
          q
        )
      }
    })
  )

  it.effect("changes are found by the user or by the named administrator who made them", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const billing = yield* Billing
      const { caller, key, orgId, userId } = yield* makeCaller()
      yield* (yield* Deployments).create(newModel(caller, "audited"))
      for (const name of ["ada@example.org", "Grace, on call"]) yield* Effect.provideService(billing.setGpuLimit(orgId, name.length), Administrator, name)
      for (const [actor, actions] of [
        [userId, ["created"]],
        ["admin:ada@example.org", ["updated"]],
        ["admin:Grace, on call", ["updated"]],
        ["admin:nobody", []],
        ["ada@example.org", []]
      ] as const) {
        const events = eventsOf(yield* call("GET", `/v1/org/audit-events?actor_user_id=${encodeURIComponent(actor)}`, { key }))
        const found = events.map(({ action, actor_user_id }) => [actor_user_id, action])
        assert.deepStrictEqual(
          found,
          actions.map((action) => [actor, action]),
          actor
        )
      }
    })
  )

  it.effect("changes are listed as audit events of the organization, with the values before and after", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* PgClient.PgClient
      const { caller, key, orgId, userId } = yield* makeCaller()
      const operation = yield* (yield* Deployments).create(newModel(caller, "audited"))
      const events = eventsOf(yield* call("GET", "/v1/org/audit-events", { key }))
      assert.deepStrictEqual(new Set(events.map(({ resource_type }) => resource_type)), new Set(["org", "membership", "billing", "api_key", "model_config"]))
      const [newest] = events
      assert.deepInclude(newest, {
        actor_kind: "user",
        actor_user_id: userId,
        resource_type: "model_config",
        resource_id: operation.modelId,
        action: "created",
        before: null
      })
      assert.deepNestedInclude(newest, { "after.deployment_id": operation.id })
      for (const event of events) {
        assert.deepStrictEqual(decode(AuditEvent)(yield* call("GET", `/v1/org/audit-events/${event.id}`, { key })), event)
      }
      const admins = events.filter(({ resource_type }) => resource_type !== "model_config")
      assert.isTrue(admins.every(({ actor_kind }) => actor_kind === "admin"))
      assert.notInclude(JSON.stringify(events), key.slice(12))

      // Any JSON is returned unchanged, at any depth.
      const values = [null, true, 0, -1.5, 1e300, "", 'ü"\\\u0001', [], {}, [[null, [{ a: [{}] }]]], { "": 1, "a b": { c: null } }]
      for (const [index, value] of values.entries()) {
        yield* sql`
          UPDATE audit_events SET before = ${JSON.stringify(value)}::text::jsonb, after = ${JSON.stringify([index, value])}::text::jsonb
          WHERE org_id = ${orgId} AND id = ${newest?.id}`
        assert.deepInclude(decode(AuditEvent)(yield* call("GET", `/v1/org/audit-events/${newest?.id}`, { key })), { before: value, after: [index, value] })
      }
    })
  )

  it.effect("another organization's model or event, a nonexistent ID and a malformed ID return the same bytes", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const owner = yield* makeCaller()
      const other = yield* makeCaller()
      const { modelId } = yield* (yield* Deployments).create(newModel(owner.caller, "isolated"))
      const [event] = eventsOf(yield* call("GET", "/v1/org/audit-events?limit=1", { key: owner.key }))
      const never = ["x", "%00", "a".repeat(5_000), "mdl_", "aud_zzzz", "req_01890000000000000000000000"]
      for (const [path, ids] of [
        ["/v1/org/models", [modelId, "mdl_01890000000000000000000000", "mdl_7zzzzzzzzzzzzzzzzzzzzzzzzz"]],
        ["/v1/org/audit-events", [event?.id ?? "", "aud_01890000000000000000000000", "aud_7zzzzzzzzzzzzzzzzzzzzzzzzz", "aud_00000000000000000000000000"]]
      ] as const) {
        const texts = yield* Effect.forEach([...ids, ...never], (id) =>
          Effect.map(call("GET", `${path}/${id}`, { key: other.key }), (answer) => {
            assert.strictEqual(answer.status, 404, id)
            return answer.text.replace(/req_[0-9a-z]{26}/, "req_")
          })
        )
        assert.strictEqual(new Set(texts).size, 1)
        const list = yield* call("GET", path, { key: other.key })
        assert.notInclude(list.text, modelId)
        assert.notInclude(list.text, owner.orgId)
      }
    })
  )
})
