import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { type Deployment, DeploymentDetail, ModelId, type Phase } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Deployments, type Page, type Position } from "../src/index.ts"
import { layerApi } from "./stage.ts"
import { makeCaller, newModel } from "./support/index.ts"

const Count = Schema.Tuple([Schema.Struct({ count: Schema.BigInt })])
const countOf = Effect.fnUntraced(function* (table: string, orgId: string) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`SELECT count(*) AS count FROM ${sql(table)} WHERE org_id = ${orgId}`
  const [row] = yield* Schema.decodeUnknownEffect(Count)(rows)
  return Number(row.count)
})

layer(layerApi, { excludeTestServices: true })("Deployments", (it) => {
  it.effect("a create inserts the model, the run, its first phase, the audit event and the outbox row", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("create")
      const operation = yield* deployments.create(newModel(caller, "k1", "tiny-chat"))
      assert.deepStrictEqual([operation.phase, operation.revisionId, operation.replayed], ["screening", null, false])
      const detail = Option.getOrThrow(yield* deployments.find(caller.orgId, operation.id))
      assert.isTrue(Schema.is(DeploymentDetail)(detail))
      assert.strictEqual(detail.model, "create/tiny-chat")
      assert.deepStrictEqual([detail.status, detail.ended_at, detail.started_by_user_id], ["screening", null, caller.userId])
      assert.deepStrictEqual<unknown>(detail.phases, [{ status: "screening", at: detail.created_at }])
      assert.strictEqual(yield* countOf("models", caller.orgId), 1)
      assert.strictEqual(yield* countOf("outbox", caller.orgId), 1)
      // The organization, its member, the purchase, the key, and the create.
      assert.strictEqual(yield* countOf("audit_events", caller.orgId), 5)
    })
  )

  it.effect("fifty callers with one idempotency key create one run", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("fifty")
      const operations = yield* Effect.forEach(Array.from({ length: 50 }), () => deployments.create(newModel(caller, "same")), { concurrency: "unbounded" })
      assert.strictEqual(new Set(operations.map(({ id }) => id)).size, 1)
      assert.strictEqual(operations.filter(({ replayed }) => !replayed).length, 1)
      assert.strictEqual(yield* countOf("deployments", caller.orgId), 1)
      assert.strictEqual(yield* countOf("models", caller.orgId), 1)
    })
  )

  it.effect("a replay returns the current operation, different input is a conflict, and keys of other organizations are independent", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("replay")
      const other = yield* makeCaller("replay-other")
      const operation = yield* deployments.create(newModel(caller, "k"))
      yield* deployments.cancel(caller.orgId, operation.id, caller.userId)
      assert.deepStrictEqual(yield* deployments.create(newModel(caller, "k")), { ...operation, phase: "cancelled", replayed: true })
      const conflict = yield* Effect.flip(deployments.create(newModel(caller, "k", "tiny", { inputHash: "b".repeat(64) })))
      assert.strictEqual(conflict._tag, "IdempotencyKeyReused")
      const theirs = yield* deployments.create(newModel(other.caller, "k"))
      assert.notStrictEqual(theirs.id, operation.id)
      assert.isFalse(theirs.replayed)
    })
  )

  it.effect("findOperation returns the result of a replay without creating or binding anything", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("look-up")
      const other = yield* makeCaller("look-up-other")
      const input = newModel(caller, "k")
      assert.isTrue(Option.isNone(yield* deployments.findOperation(caller.orgId, "k", input.inputHash)))
      const operation = yield* deployments.create(input)
      assert.isFalse(operation.replayed)
      assert.deepStrictEqual(yield* deployments.findOperation(caller.orgId, "k", input.inputHash), Option.some({ ...operation, replayed: true }))
      assert.strictEqual((yield* Effect.flip(deployments.findOperation(caller.orgId, "k", "b".repeat(64))))._tag, "IdempotencyKeyReused")
      assert.isTrue(Option.isNone(yield* deployments.findOperation(other.caller.orgId, "k", input.inputHash)))
      yield* (yield* PgClient.PgClient)`UPDATE models SET deleted_at = now() WHERE org_id = ${caller.orgId} AND id = ${operation.modelId}`
      assert.strictEqual((yield* Effect.flip(deployments.findOperation(caller.orgId, "k", input.inputHash)))._tag, "ModelDeleted")
    })
  )

  it.effect("a replay of a run whose model was deleted fails and creates nothing", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("deleted")
      const operation = yield* deployments.create(newModel(caller, "k"))
      yield* sql`UPDATE models SET deleted_at = now() WHERE org_id = ${caller.orgId} AND id = ${operation.modelId}`
      const error = yield* Effect.flip(deployments.create(newModel(caller, "k")))
      assert.strictEqual(error._tag, "ModelDeleted")
      const again = yield* deployments.create(newModel(caller, "k2"))
      assert.notStrictEqual(again.modelId, operation.modelId)
      const redeploy = newModel(caller, "k3", "", { target: { _tag: "Redeploy", modelId: operation.modelId, ref: null } })
      assert.strictEqual((yield* Effect.flip(deployments.create(redeploy)))._tag, "RecordNotFound")
    })
  )

  it.effect("a refused create does not bind its key, which can be used again", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("taken")
      yield* deployments.create(newModel(caller, "k1", "tiny"))
      const taken = yield* Effect.flip(deployments.create(newModel(caller, "k2", "tiny")))
      assert.deepStrictEqual([taken._tag, "slug" in taken && taken.slug], ["ModelNameTaken", "tiny"])
      const unknown = newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId: ModelId.make("mdl_00000000000000000000000000"), ref: null } })
      assert.strictEqual((yield* Effect.flip(deployments.create(unknown)))._tag, "RecordNotFound")
      assert.strictEqual(yield* countOf("idempotency_keys", caller.orgId), 1)
      assert.isFalse((yield* deployments.create(newModel(caller, "k2", "small", { inputHash: "c".repeat(64) }))).replayed)
    })
  )

  it.effect("a redeploy keeps omitted settings, and no organization can deploy another's model", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("again")
      const other = yield* makeCaller("again-other")
      const first = yield* deployments.create(newModel(caller, "k1", "tiny", { serving: { host_class: "cpu-small", max_context: 512 } }))
      const target = { _tag: "Redeploy", modelId: first.modelId, ref: null } as const
      const second = yield* deployments.create(newModel(caller, "k2", "", { target }))
      assert.strictEqual(second.modelId, first.modelId)
      const rows = yield* sql`SELECT serving, ref FROM deployments WHERE org_id = ${caller.orgId} AND id = ${second.id}`
      assert.deepStrictEqual<unknown>(rows, [{ serving: { host_class: "cpu-small", max_context: 512 }, ref: "main" }])
      assert.strictEqual((yield* Effect.flip(deployments.create(newModel(other.caller, "k", "", { target }))))._tag, "RecordNotFound")
    })
  )

  it.effect("a run can be canceled once, and only by its organization", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("cancel")
      const other = yield* makeCaller("cancel-other")
      const operation = yield* deployments.create(newModel(caller, "k"))
      assert.strictEqual((yield* Effect.flip(deployments.cancel(other.caller.orgId, operation.id, other.caller.userId)))._tag, "RecordNotFound")
      const attempts = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => Effect.match(deployments.cancel(caller.orgId, operation.id, caller.userId), { onFailure: ({ _tag }) => _tag, onSuccess: () => "cancelled" }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(attempts.toSorted(), [...Array.from({ length: 9 }, () => "DeploymentFinished"), "cancelled"])
      const detail = Option.getOrThrow(yield* deployments.find(caller.orgId, operation.id))
      assert.deepStrictEqual(
        detail.phases.map(({ status }) => status),
        ["screening", "cancelled"] satisfies ReadonlyArray<Phase>
      )
      assert.isNotNull(detail.ended_at)
      assert.isTrue(Option.isNone(yield* deployments.find(other.caller.orgId, operation.id)))
    })
  )

  it.effect("pages contain every run once, newest first, for any limit, while runs are created", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("pages")
      for (let index = 0; index < 23; index++) yield* deployments.create(newModel(caller, `k${index}`, `m${index}`))
      // With equal milliseconds, the ID decides.
      yield* sql`UPDATE deployments SET created_at = date_trunc('second', created_at) WHERE org_id = ${caller.orgId}`
      const all = (yield* deployments.list(caller.orgId, { limit: 200, after: null })).items
      const expected = all.toSorted((a, b) => (a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1))
      assert.deepStrictEqual(all, expected)
      assert.strictEqual(all.length, 23)
      const listedIds: Array<string> = []
      let after: Position | null = null
      for (let page = 0; page === 0 || after !== null; page++) {
        const batch: Page<Deployment> = yield* deployments.list(caller.orgId, { limit: 1 + (page % 7), after })
        listedIds.push(...batch.items.map(({ id }) => id))
        after = batch.next
        if (page < 3) yield* deployments.create(newModel(caller, `later${page}`, `later${page}`))
      }
      assert.deepStrictEqual(
        listedIds,
        all.map(({ id }) => id)
      )
    })
  )

  it.effect("filters restrict a list to the model, the bucket and the organization", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("filters")
      const other = yield* makeCaller("filters-other")
      yield* deployments.create(newModel(other.caller, "k"))
      const a = yield* deployments.create(newModel(caller, "a", "a"))
      const b = yield* deployments.create(newModel(caller, "b", "b"))
      yield* deployments.cancel(caller.orgId, b.id, caller.userId)
      const page = { limit: 50, after: null }
      const list = (query: object) => Effect.map(deployments.list(caller.orgId, { ...page, ...query }), ({ items }) => items.map(({ id }) => id).toSorted())
      assert.deepStrictEqual(yield* list({}), [a.id, b.id].toSorted())
      assert.deepStrictEqual(yield* list({ modelId: a.modelId }), [a.id])
      assert.deepStrictEqual(yield* list({ bucket: "running" }), [a.id])
      assert.deepStrictEqual(yield* list({ bucket: "stopped" }), [b.id])
      assert.deepStrictEqual(yield* list({ bucket: "succeeded" }), [])
      assert.deepStrictEqual(yield* list({ bucket: "failed", modelId: b.modelId }), [])
      assert.deepStrictEqual((yield* deployments.list(other.caller.orgId, { ...page, modelId: a.modelId })).items, [])
    })
  )
})
