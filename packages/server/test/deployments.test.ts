import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { type HostClass, optionalNullable, type Phase, scopes, workingPhases } from "@seatrial/domain"
import { Billing, Deployments, HostClasses, Organizations, Runs } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type Answer, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const Operation = Schema.Struct({ id: Schema.String, model_id: Schema.String, status: Schema.String, status_url: Schema.String })
const operationOf = (answer: Answer) => Schema.decodeUnknownSync(Operation)(jsonOf(answer))

const ErrorBody = Schema.Struct({ error: Schema.Struct({ type: Schema.String, code: Schema.String, param: optionalNullable(Schema.String) }) })
const errorOf = (answer: Answer) => Schema.decodeUnknownSync(ErrorBody)(jsonOf(answer)).error

const source = { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }

let keys = 0
const freshKey = () => `key-${++keys}`

const create = Effect.fnUntraced(function* (key: string, body: unknown, idempotencyKey = freshKey()) {
  const { call } = yield* Stage
  return yield* call("POST", "/v1/deployments", { key, body, headers: { "idempotency-key": idempotencyKey } })
})

let names = 0
const newModel = (over: Readonly<Record<string, unknown>> = {}) => ({ model_name: `model-${++names}`, source, ...over })

const cpu: HostClass = {
  name: "cpu-small",
  runtimes: [{ runtime: "reference", image: "reference" }],
  gpu_pool: "simulated-small",
  gpu_count: 1,
  gpu_memory_bytes: 2 ** 30,
  price_per_gpu_hour_micros: "100000",
  simulated: true
}

layer(layerStage(), { excludeTestServices: true })("deployments over HTTP", (it) => {
  describe("a create", () => {
    it.effect("returns 201 with the operation and its location", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { key } = yield* makeTenant()
        const answer = yield* create(key, newModel())
        const operation = operationOf(answer)
        assert.strictEqual(answer.status, 201)
        assert.strictEqual(operation.status, "screening")
        assert.strictEqual(operation.status_url, `/v1/deployments/${operation.id}`)
        assert.strictEqual(answer.headers.location, operation.status_url)
        assert.isUndefined(answer.headers["idempotent-replayed"])
        const detail = yield* call("GET", operation.status_url, { key })
        assert.deepInclude(jsonOf(detail), { id: operation.id, model_id: operation.model_id, status: "screening", revision_id: null, ended_at: null })
      })
    )

    it.effect("that is repeated returns the same operation, for any order of members and with explicit defaults", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const idempotencyKey = freshKey()
        const first = yield* create(
          key,
          { source: { kind: "model_hub", repo: "Seatrial/Tiny-Chat" }, serving: { hold_seconds: 60, max_context: 128 } },
          idempotencyKey
        )
        const again = yield* create(
          key,
          { serve: true, serving: { max_context: 128, hold_seconds: 60 }, source: { repo: "Seatrial/Tiny-Chat", kind: "model_hub" }, model_name: "tiny-chat" },
          idempotencyKey
        )
        assert.deepStrictEqual([first.status, again.status], [201, 200])
        assert.strictEqual(again.headers["idempotent-replayed"], "true")
        assert.strictEqual(again.headers.location, first.headers.location)
        assert.strictEqual(again.text, first.text)
      })
    )

    it.effect("that is repeated returns its operation even if the host classes or the account have changed", () =>
      Effect.gen(function* () {
        const hostClasses = yield* HostClasses
        const sql = yield* PgClient.PgClient
        const tenant = yield* makeTenant()
        const idempotencyKey = freshKey()
        yield* hostClasses.replaceAll([cpu])
        const body = newModel({ serving: { host_class: "cpu-small", runtime: "reference" } })
        const first = yield* create(tenant.key, body, idempotencyKey)
        assert.strictEqual(first.status, 201)

        yield* hostClasses.replaceAll([{ ...cpu, name: "cpu-other" }])
        yield* sql`UPDATE organizations SET first_purchase_at = NULL WHERE id = ${tenant.orgId}`
        const { secret } = yield* tenant.withKey(scopes)
        const again = yield* create(secret, body, idempotencyKey)
        assert.deepStrictEqual([again.status, again.text], [200, first.text])
        assert.strictEqual(again.headers["idempotent-replayed"], "true")

        const [elsewhere, unpaid] = [yield* create(secret, body), yield* create(secret, newModel())]
        assert.deepStrictEqual([elsewhere.status, errorOf(elsewhere).param], [422, "serving.host_class"])
        assert.deepStrictEqual([unpaid.status, errorOf(unpaid).code], [402, "first_purchase_required"])
      })
    )

    it.effect("may name a host class while the installation has not reported any", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        yield* (yield* HostClasses).replaceAll([])
        assert.strictEqual((yield* create(key, newModel({ serving: { host_class: "h100", runtime: "reference" } }))).status, 201)
      })
    )

    it.effect("with an idempotency key of other input is refused, and does not bind the key", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const idempotencyKey = freshKey()
        const body = newModel()
        const first = yield* create(key, body, idempotencyKey)
        for (const other of [{ ...body, serve: false }, { ...body, source: { ...source, ref: "v2" } }, { ...body, serving: { hold_seconds: 1 } }, newModel()]) {
          const conflict = yield* create(key, other, idempotencyKey)
          assert.strictEqual(conflict.status, 409)
          assert.deepInclude(errorOf(conflict), { code: "idempotency_key_reused", type: "conflict_error" })
        }
        assert.strictEqual(operationOf(yield* create(key, body, idempotencyKey)).id, operationOf(first).id)
      })
    )

    it.effect("that was refused does not bind its idempotency key", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const idempotencyKey = freshKey()
        assert.strictEqual((yield* create(key, { nonsense: true }, idempotencyKey)).status, 400)
        assert.strictEqual((yield* create(key, newModel(), idempotencyKey)).status, 201)
      })
    )

    it.effect("many times at once with one idempotency key creates one deployment per organization", () =>
      Effect.gen(function* () {
        const { key, orgId } = yield* makeTenant()
        const other = yield* makeTenant()
        const idempotencyKey = freshKey()
        const body = newModel()
        const answers = yield* Effect.all(
          Array.from({ length: 20 }, () => create(key, body, idempotencyKey)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [...Array.from({ length: 19 }, () => 200), 201])
        assert.strictEqual(new Set(answers.map((answer) => operationOf(answer).id)).size, 1)
        assert.strictEqual((yield* (yield* Deployments).list(orgId, { limit: 50, after: null })).items.length, 1)
        assert.strictEqual((yield* create(other.key, body, idempotencyKey)).status, 201)
      })
    )

    it.effect("with the name of an existing model is refused", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const body = newModel()
        yield* create(key, body)
        const taken = yield* create(key, body)
        assert.strictEqual(taken.status, 409)
        assert.deepInclude(errorOf(taken), { code: "model_name_taken", param: "model_name" })
      })
    )

    it.effect("of an existing model takes the ID of a model of the same organization", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const other = yield* makeTenant()
        const created = operationOf(yield* create(key, newModel()))
        const again = yield* create(key, { model_id: created.model_id, ref: "v2" })
        assert.strictEqual(again.status, 201)
        assert.strictEqual(operationOf(again).model_id, created.model_id)
        assert.notStrictEqual(operationOf(again).id, created.id)
        for (const model_id of [created.model_id, "mdl_01890000000000000000000000", "nothing"]) {
          const answer = yield* create(other.key, { model_id })
          assert.strictEqual(answer.status, 404, model_id)
          assert.deepInclude(errorOf(answer), { code: "not_found", param: "model_id" })
        }
      })
    )

    it.effect("requires models:write unless serve is false", () =>
      Effect.gen(function* () {
        const tenant = yield* makeTenant()
        const { secret } = yield* tenant.withKey(scopes.filter((scope) => scope !== "models:write"))
        for (const over of [{}, { serve: true }]) {
          const refused = yield* create(secret, newModel(over))
          assert.strictEqual(refused.status, 403)
          assert.deepInclude(errorOf(refused), { code: "missing_scope", param: "models:write" })
        }
        assert.strictEqual((yield* create(secret, newModel({ serve: false }))).status, 201)
      })
    )

    it.effect("requires a first purchase", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant(scopes, false)
        const refused = yield* create(key, newModel())
        assert.strictEqual(refused.status, 402)
        assert.deepInclude(errorOf(refused), { code: "first_purchase_required", type: "billing_error" })
      })
    )

    it.effect("or a redeploy returns 402 while the balance or a limit is used up, and does not bind its idempotency key", () =>
      Effect.gen(function* () {
        const billing = yield* Billing
        const sql = yield* SqlClient.SqlClient
        const tenant = yield* makeTenant()
        const { orgId } = tenant
        const created = operationOf(yield* create(tenant.key, newModel()))
        const attempts = [newModel({ model_name: "next" }), { model_id: created.model_id, ref: "v2" }]
        const key = Effect.map(tenant.withKey(scopes), ({ secret }) => secret)
        const refusedWith = Effect.fnUntraced(function* (code: string, says: RegExp) {
          // A new API key each time, because the server caches the billing rules of a key.
          const secret = yield* key
          for (const [index, body] of attempts.entries()) {
            const refused = yield* create(secret, body, `unpaid-${index}`)
            assert.strictEqual(refused.status, 402, refused.text)
            assert.deepInclude(errorOf(refused), { code, type: "billing_error" })
            assert.match(refused.text, says)
          }
        })
        yield* billing.setSpendLimit(orgId, { day: 0n })
        yield* refusedWith("spend_limit_reached", /day/)
        yield* billing.setSpendLimit(orgId, { day: null, month: 0n })
        yield* refusedWith("spend_limit_reached", /month/)
        yield* billing.setSpendLimit(orgId, { month: null })
        yield* billing.setPrepaid(orgId, true)
        yield* sql`DELETE FROM purchases WHERE org_id = ${orgId}`
        yield* refusedWith("insufficient_balance", /purchase/)
        yield* (yield* Organizations).recordPurchase({ orgId, micros: 1_000_000n })
        const paid = yield* key
        for (const [index, body] of attempts.entries()) assert.strictEqual((yield* create(paid, body, `unpaid-${index}`)).status, 201)
      })
    )

    it.effect("reports a host class, runtime, cache type or flag that the installation does not have", () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        yield* (yield* HostClasses).replaceAll([cpu])
        const cases: ReadonlyArray<readonly [serving: unknown, param: string | null, code?: string]> = [
          [{ kv_cache_dtype: "fp8" }, "serving.kv_cache_dtype"],
          [{ runtime: "reference", kv_cache_dtype: "fp8_e5m2" }, "serving.kv_cache_dtype"],
          [{ runtime: "reference", kv_cache_dtype: "auto" }, null],
          [{ host_class: "h100" }, "serving.host_class", "host_class_unknown"],
          [{ runtime: "vllm" }, "serving.runtime"],
          [{ engine_flags: { port: 1 } }, "serving.engine_flags.port"],
          [{ host_class: "cpu-small", engine_flags: { max_num_seqs: "many" } }, "serving.engine_flags.max_num_seqs"],
          [{ host_class: "cpu-small", runtime: "reference", engine_flags: { max_num_seqs: 4 } }, null]
        ]
        for (const [serving, param, code] of cases) {
          const answer = yield* create(key, newModel({ serving }))
          assert.strictEqual(answer.status, param === null ? 201 : code === undefined ? 400 : 422, JSON.stringify(serving))
          if (param !== null) assert.strictEqual(errorOf(answer).param, param)
          if (code !== undefined) assert.deepInclude(errorOf(answer), { type: "refused_error", code })
        }
      })
    )
  })

  describe("a cancel", () => {
    it.effect("ends the run once, with no body or an empty one, and returns 409 for a finished run", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { key } = yield* makeTenant()
        for (const body of [undefined, {}]) {
          const { id, status_url } = operationOf(yield* create(key, newModel()))
          const cancelled = yield* call("POST", `${status_url}/cancel`, { key, ...(body === undefined ? {} : { body }) })
          assert.strictEqual(cancelled.status, 200)
          assert.deepStrictEqual(jsonOf(cancelled), { id, cancelled: true })
          const late = yield* call("POST", `${status_url}/cancel`, { key })
          assert.strictEqual(late.status, 409)
          assert.deepInclude(errorOf(late), { code: "deployment_finished", type: "conflict_error" })
          assert.deepInclude(jsonOf(yield* call("GET", status_url, { key })), { status: "cancelled" })
        }
      })
    )
  })

  it.effect("the two families have their own phase names for the same run", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key, orgId } = yield* makeTenant()
      const runs = yield* Runs
      const id = yield* Effect.map(create(key, newModel()), (answer) => Schema.decodeUnknownSync(Schema.Struct({ id: Schema.String }))(jsonOf(answer)).id)
      const deployment = (yield* (yield* Deployments).list(orgId, { limit: 1, after: null })).items[0]
      assert.strictEqual(deployment?.id, id)
      const live = yield* runs.live
      const run = live.find((candidate) => candidate.id === id)?.id
      if (run === undefined) return yield* Effect.die(new Error("the run is not live"))
      const steps: ReadonlyArray<Phase> = workingPhases.slice(1)
      let from: Phase = "screening"
      for (const to of steps) {
        assert.isTrue(yield* runs.enter({ id: run, orgId, from, to, reason: "Test" }), `${from} to ${to}`)
        from = to
      }
      yield* runs.enter({ id: run, orgId, from, to: "failed", reason: "Test", failure: { code: "test", text: "on purpose" } })

      const Detail = Schema.Struct({
        status: Schema.String,
        failure_detail: Schema.NullOr(Schema.String),
        phases: Schema.Array(Schema.Struct({ status: Schema.String }))
      })
      const detail = (path: string) => Effect.map(call("GET", path, { key }), (answer) => Schema.decodeUnknownSync(Detail)(jsonOf(answer)))
      const org = yield* detail(`/v1/org/deployments/${id}`)
      const v1 = yield* detail(`/v1/deployments/${id}`)
      assert.deepStrictEqual(
        org.phases.map(({ status }) => status),
        [...workingPhases, "failed"]
      )
      const folded = ["screening", "ingesting", "probing", "staging", "checking", "activating", "failed"]
      assert.deepStrictEqual(
        v1.phases.map(({ status }) => status),
        folded
      )
      assert.strictEqual(org.failure_detail, "test: on purpose")
      const Events = Schema.Struct({ deployment_id: Schema.String, data: Schema.Array(Schema.Struct({ phase: Schema.String, entered_at: Schema.String })) })
      const events = Schema.decodeUnknownSync(Events)(jsonOf(yield* call("GET", `/v1/deployments/${id}/events`, { key })))
      assert.strictEqual(events.deployment_id, id)
      assert.deepStrictEqual(
        events.data.map(({ phase }) => phase),
        folded
      )
    })
  )

  it.effect("another organization's deployment and a nonexistent one return the same bytes", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const owner = yield* makeTenant()
      const other = yield* makeTenant()
      const { id } = operationOf(yield* create(owner.key, newModel()))
      const ids = [id, "dep_01890000000000000000000000", "dep_x", "x", "..%2f", "a".repeat(5000), "%00", "dep_0189000000000000000000000%00"]
      for (const [method, path] of [
        ["GET", "/v1/deployments/ID"],
        ["GET", "/v1/org/deployments/ID"],
        ["GET", "/v1/deployments/ID/events"],
        ["POST", "/v1/deployments/ID/cancel"]
      ] as const) {
        const texts = yield* Effect.forEach(ids, (given) =>
          Effect.map(call(method, path.replace("ID", given), { key: other.key }), (answer) => {
            assert.strictEqual(answer.status, 404, `${method} ${path} ${given}`)
            return answer.text.replace(/req_[0-9a-z]{26}/, "req_")
          })
        )
        assert.strictEqual(new Set(texts).size, 1)
      }
      assert.deepInclude(jsonOf(yield* call("GET", "/v1/deployments", { key: other.key })), { data: [] })
      assert.strictEqual((yield* call("GET", `/v1/deployments/${id}`, { key: owner.key })).status, 200)
    })
  )
})
