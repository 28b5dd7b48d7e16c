import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { ApiKeys, Billing } from "@seatrial/store"
import { Deferred, Effect, Fiber, Layer, Option, Redacted, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const Operation = Schema.Struct({ id: Schema.String, model_id: Schema.String })
const operationOf = (answer: Answer) => Schema.decodeUnknownSync(Operation)(jsonOf(answer))
const ErrorBody = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })
const errorOf = (answer: Answer) => Schema.decodeUnknownSync(ErrorBody)(jsonOf(answer)).error

const create = Effect.fnUntraced(function* (key: string, body: unknown, idempotencyKey: string) {
  const { call } = yield* Stage
  return yield* call("POST", "/v1/deployments", { key, body, headers: { "idempotency-key": idempotencyKey } })
})
const newModel = (name: string) => ({ source: { kind: "model_hub", repo: "seatrial/tiny-chat" }, model_name: name })

layer(Billing.layerSql.pipe(Layer.provideMerge(layerStage())), { excludeTestServices: true })("a key that changes", (it) => {
  it.effect("during a create lets that create finish, and nothing after it", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { key, keyId, orgId, withKey } = yield* makeTenant()
      const { model_id } = operationOf(yield* create(key, newModel("held"), "first"))

      const [held, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(
        sql`SELECT 1 FROM models WHERE org_id = ${orgId} AND id = ${model_id} FOR UPDATE`.pipe(
          Effect.andThen(Deferred.succeed(held, undefined)),
          Effect.andThen(Deferred.await(release)),
          sql.withTransaction
        )
      )
      yield* Deferred.await(held)
      const underWay = yield* Effect.forkChild(create(key, { model_id }, "second"))
      yield* sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`.pipe(
        Effect.repeat({ until: (waiting) => waiting.length > 0 }),
        Effect.timeout("10 seconds")
      )
      yield* (yield* ApiKeys).revoke(orgId, keyId)
      assert.strictEqual((yield* create(key, { model_id }, "third")).status, 401)
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(holder)
      const created = yield* Fiber.join(underWay)
      assert.strictEqual(created.status, 201)

      // Another key of the organization gets the same deployment for the same idempotency key.
      const { secret } = yield* withKey(["deployments:write", "models:write"])
      const again = yield* create(secret, { model_id }, "second")
      assert.deepStrictEqual([again.status, operationOf(again).id], [200, operationOf(created).id])
      assert.strictEqual((yield* create(key, { model_id }, "second")).status, 401)
    })
  )

  it.effect("by rotation has two valid secrets during the overlap, and one without an overlap", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const keys = yield* ApiKeys
      const { key: first, keyId, orgId } = yield* makeTenant()
      const statusOf = (secret: string) => Effect.map(call("GET", "/v1/deployments", { key: secret }), ({ status }) => status)
      const rotate = (overlap: number) => Effect.map(keys.rotate(orgId, keyId, overlap), (rotated) => Redacted.value(Option.getOrThrow(rotated).secret))
      const { id } = operationOf(yield* create(first, newModel("rotated"), "k"))
      const second = yield* rotate(3_600_000)
      assert.deepStrictEqual([yield* statusOf(first), yield* statusOf(second)], [200, 200])
      assert.strictEqual(operationOf(yield* create(second, newModel("rotated"), "k")).id, id)
      const third = yield* rotate(0)
      assert.deepStrictEqual([yield* statusOf(first), yield* statusOf(second), yield* statusOf(third)], [401, 401, 200])
    })
  )

  it.effect("only in its billing cannot deploy while billing is suspended, and the error says so", () =>
    Effect.gen(function* () {
      const billing = yield* Billing
      const { key, orgId } = yield* makeTenant()
      const first = yield* create(key, newModel("before"), "before")
      yield* billing.setSuspended(orgId, true)
      // Creates succeed until the server is notified of the suspension. Each attempt needs a new model and idempotency key.
      let tries = 0
      const refused = yield* Effect.suspend(() => create(key, newModel(`attempt-${++tries}`), `attempt-${tries}`)).pipe(
        Effect.repeat({ until: ({ status }) => status !== 201 }),
        Effect.timeout("10 seconds")
      )
      assert.deepStrictEqual([refused.status, errorOf(refused).code], [402, "first_purchase_required"])
      assert.match(errorOf(refused).message, /first purchase.*billing is suspended/)
      const replayed = yield* create(key, newModel("before"), "before")
      assert.deepStrictEqual([replayed.status, operationOf(replayed).id], [200, operationOf(first).id])
      yield* billing.setSuspended(orgId, false)
      yield* create(key, newModel("after"), "after").pipe(Effect.repeat({ until: ({ status }) => status === 201 }), Effect.timeout("10 seconds"))
    })
  )
})
