import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { OrgId } from "@seatrial/domain"
import { Effect, Layer, Option, Schema } from "effect"
import { type AdoptInput, AppliedResources, Deployments, ModelAdmin, OwnModels, Runs } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, newModel, walk } from "./support/index.ts"
import { screened } from "./support/trialRecords.ts"

const place = (name: string) => ({ namespace: "seatrial", name })
const input = (orgId: OrgId, name: string, change: Partial<AdoptInput> = {}, version: Partial<AdoptInput["resource"]> = {}): AdoptInput => ({
  orgId,
  resource: { ...place(name), uid: `uid-${name}`, generation: 1, ...version },
  specHash: "a".repeat(64),
  modelId: null,
  source: { kind: "model_hub", repo: "seatrial/tiny-chat" },
  serving: { max_context: 512 },
  serve: true,
  ...change
})

const Audited = Schema.Array(Schema.Struct({ actorKind: Schema.String, action: Schema.String }))
const audited = Effect.fnUntraced(function* (orgId: OrgId) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`
    SELECT actor_kind AS "actorKind", action FROM audit_events WHERE org_id = ${orgId} AND resource_type = 'model_config' AND actor_kind = 'system' ORDER BY created_at, id`
  return (yield* Schema.decodeUnknownEffect(Audited)(rows)).map(({ action }) => action)
})

const layerApplied = Layer.mergeAll(AppliedResources.layerSql.pipe(Layer.provide(layerRole("operator"))), ModelAdmin.layerSql, OwnModels.layerSql).pipe(
  Layer.provideMerge(layerStore)
)

layer(layerApplied, { excludeTestServices: true })("applied resources", (it) => {
  it.effect("one version of an object creates one run and one audit event, even if it is adopted repeatedly and concurrently", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const { caller } = yield* makeCaller("applied-once")
      const adopted = yield* Effect.forEach(Array.from({ length: 20 }), () => applied.adopt(input(caller.orgId, "once")), { concurrency: "unbounded" })
      assert.strictEqual(new Set(adopted).size, 1)
      const [id] = adopted
      const run = id === undefined ? undefined : Option.getOrUndefined(yield* runs.observe(id))
      assert.deepStrictEqual([run?.model, run?.phase, run?.startedBy, run?.servingRequest], ["applied-once/once", "screening", null, { max_context: 512 }])
      assert.deepStrictEqual(run?.applied, { ...place("once"), current: { uid: "uid-once", generation: 1, namesModel: false } })
      assert.deepStrictEqual(yield* audited(caller.orgId), ["created"])
      assert.include(
        (yield* runs.live).map((each) => each.id),
        id
      )
    })
  )

  it.effect("another generation creates another run of the same model and cancels the unfinished earlier run", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const { caller } = yield* makeCaller("applied-again")
      const first = yield* applied.adopt(input(caller.orgId, "again"))
      const second = yield* applied.adopt(input(caller.orgId, "again", { specHash: "b".repeat(64), serving: {} }, { generation: 2 }))
      const [before, after] = [Option.getOrThrow(yield* runs.observe(first)), Option.getOrThrow(yield* runs.observe(second))]
      assert.deepStrictEqual([before.phase, before.applied?.current], ["cancelled", null])
      assert.deepStrictEqual([after.phase, after.modelId, after.olderRun, after.servingRequest], ["screening", before.modelId, null, {}])
      assert.deepStrictEqual(yield* audited(caller.orgId), ["created", "updated"])
    })
  )

  it.effect("another generation does not change a finished run", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const { caller } = yield* makeCaller("applied-served")
      const first = yield* applied.adopt(input(caller.orgId, "served"))
      yield* walk(caller, first, "activating")
      yield* runs.activate({ id: first, orgId: caller.orgId, from: "activating" })
      assert.isNull(Option.getOrThrow(yield* runs.observe(first)).shownBy)
      const second = yield* applied.adopt(input(caller.orgId, "served", { specHash: "b".repeat(64) }, { generation: 2 }))
      const before = Option.getOrThrow(yield* runs.observe(first))
      assert.deepStrictEqual([before.phase, before.revision?.status, before.shownBy], ["activated", "active", second])
    })
  )

  it.effect("the newest run of an object reads how many engines of the serving revision a gateway has reached", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const sql = yield* PgClient.PgClient
      const { caller } = yield* makeCaller("applied-reached")
      const { orgId } = caller
      const first = yield* applied.adopt(input(orgId, "reached"))
      yield* walk(caller, first, "activating")
      const urls = ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]
      yield* runs.publishEndpoints(
        first,
        orgId,
        urls.map((url) => ({ url, pod: url }))
      )
      yield* runs.activate({ id: first, orgId, from: "activating" })
      const second = yield* applied.adopt(input(orgId, "reached", { specHash: "b".repeat(64) }, { generation: 2 }))
      const predecessor = Effect.map(runs.observe(second), (run) => Option.getOrThrow(run).predecessor)
      assert.deepInclude(yield* predecessor, { run: first, commit: screened.facts.commit, replicas: 0 })
      yield* sql`UPDATE endpoints SET reachable_at = now() WHERE org_id = ${orgId} AND url = ${urls[0]}`
      assert.deepInclude(yield* predecessor, { replicas: 1 })
    })
  )

  it.effect("the number of engines that an object sets is the model's, once audited, until the object sets none and the API may change it", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const models = yield* OwnModels
      const sql = yield* PgClient.PgClient
      const { caller } = yield* makeCaller("applied-scaled")
      const { orgId } = caller
      const id = yield* applied.adopt(input(orgId, "scaled"))
      yield* walk(caller, id, "activating")
      yield* runs.activate({ id, orgId, from: "activating" })
      yield* sql`DELETE FROM outbox WHERE org_id = ${orgId}`
      const numbers = Effect.map(runs.observe(id), (run) => {
        const { applied, replicas } = Option.getOrThrow(run)
        return [replicas, applied?.current?.replicas]
      })
      assert.deepStrictEqual(yield* numbers, [1, undefined])
      yield* Effect.forEach([3, 3, 3], (replicas) => applied.scale(place("scaled"), { replicas }), { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* numbers, [3, 3])
      assert.strictEqual(Option.getOrThrow(yield* applied.find(place("scaled"))).replicas, 3)
      const events = yield* sql`SELECT before, after FROM audit_events WHERE org_id = ${orgId} AND actor_kind = 'system' AND action = 'updated'`
      assert.deepStrictEqual<unknown>(events, [{ before: { replicas: 1 }, after: { replicas: 3, applied: place("scaled") } }])
      // The operator is told about the serving run.
      assert.strictEqual((yield* sql`SELECT FROM outbox WHERE org_id = ${orgId} AND deployment_id = ${id}`).length, 1)

      const refused = yield* Effect.flip(models.scale(caller, "scaled", { replicas: 2 }))
      assert.deepInclude(refused, { _tag: "ModelManaged", ...place("scaled"), isAutoscaled: false })
      yield* models.scale(caller, "scaled", { replicas: 3 })
      // A change of the specification keeps the number, and so does an object that sets none any more.
      const second = yield* applied.adopt(input(orgId, "scaled", { specHash: "b".repeat(64) }, { generation: 2 }))
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(second)).applied?.current?.replicas, 3)
      const limits = { min_replicas: 1, max_replicas: 4, target: 0.5 }
      yield* applied.scale(place("scaled"), limits)
      const limited = Option.getOrThrow(yield* runs.observe(second))
      assert.deepStrictEqual(
        [limited.replicas, limited.scaling, limited.applied?.current?.scaling],
        [3, { minReplicas: 1, maxReplicas: 4, target: 0.5 }, limits]
      )
      assert.deepInclude(yield* Effect.flip(models.scale(caller, "scaled", { ...limits, target: 0.6 })), { _tag: "ModelManaged", isAutoscaled: true })
      assert.deepStrictEqual(Option.getOrThrow(yield* applied.find(place("scaled"))).scaling, limits)
      yield* applied.scale(place("scaled"), { replicas: 3 })
      yield* applied.scale(place("scaled"), null)
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(second)).replicas, 3)
      yield* models.scale(caller, "scaled", { replicas: 2 })
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(second)).replicas, 2)
    })
  )

  it.effect("a name that a model of the API has is refused, and nothing is bound", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const { caller } = yield* makeCaller("applied-taken")
      yield* (yield* Deployments).create(newModel(caller, "k", "taken"))
      assert.strictEqual((yield* Effect.flip(applied.adopt(input(caller.orgId, "taken"))))._tag, "ModelNameTaken")
      assert.isTrue(Option.isNone(yield* applied.find(place("taken"))))
    })
  )

  it.effect("a recreated object takes over the model of the earlier object", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const { caller } = yield* makeCaller("applied-recreated")
      const id = yield* applied.adopt(input(caller.orgId, "recreated"))
      yield* applied.rebind({ ...place("recreated"), uid: "other", generation: 1 }, "b".repeat(64))
      assert.strictEqual(Option.getOrThrow(yield* applied.find(place("recreated"))).uid, "uid-recreated")
      yield* applied.rebind({ ...place("recreated"), uid: "other", generation: 3 }, "a".repeat(64))
      const bound = Option.getOrThrow(yield* applied.find(place("recreated")))
      assert.deepStrictEqual([bound.uid, bound.generation, bound.deploymentId, bound.repo], ["other", 3, id, "seatrial/tiny-chat"])
    })
  )

  it.effect("deleting an object cancels its run and deletes its model once, and the name can be applied again", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const { caller } = yield* makeCaller("applied-gone")
      const first = yield* applied.adopt(input(caller.orgId, "gone"))
      assert.deepStrictEqual([yield* applied.retire(place("gone")), yield* applied.retire(place("gone"))], [true, false])
      const run = Option.getOrThrow(yield* runs.observe(first))
      assert.deepStrictEqual([run.phase, run.modelDeleted, run.applied?.current], ["cancelled", true, null])
      assert.deepStrictEqual(yield* audited(caller.orgId), ["created", "deleted"])
      const second = yield* applied.adopt(input(caller.orgId, "gone"))
      assert.notStrictEqual(second, first)
    })
  )

  it.effect("an object that names a model deploys a new revision with the API's default settings and ref, and its deletion does not change the model", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const { caller } = yield* makeCaller("applied-named")
      const adopted = yield* (yield* Deployments).create(newModel(caller, "k", "first"))
      const { modelId } = Option.getOrThrow(yield* runs.observe(adopted.id))
      yield* walk(caller, adopted.id, "activating")
      yield* runs.activate({ id: adopted.id, orgId: caller.orgId, from: "activating" })
      const served = Option.getOrThrow(yield* runs.observe(adopted.id))
      const id = yield* applied.adopt(input(caller.orgId, "second", { modelId, serving: {} }))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.modelId, run.model, run.source], [modelId, "applied-named/first", served.source])
      assert.deepStrictEqual<unknown>([run.servingRequest, run.keptChoices], [served.revision?.settings, {}])
      assert.isTrue(run.applied?.current?.namesModel)
      assert.isTrue(Option.getOrThrow(yield* applied.find(place("second"))).namesModel)
      const next = yield* applied.adopt(
        input(caller.orgId, "second", { modelId, source: { kind: "model_hub", repo: run.source.repo, ref: "v2" } }, { generation: 2 })
      )
      const changed = Option.getOrThrow(yield* runs.observe(next))
      assert.deepStrictEqual([changed.source.ref, changed.servingRequest, changed.keptChoices], ["v2", { max_context: 512 }, null])
      assert.isTrue(yield* applied.retire(place("second")))
      const after = Option.getOrThrow(yield* runs.observe(next))
      assert.deepStrictEqual([after.phase, after.modelDeleted, after.applied?.current], ["cancelled", false, null])
      assert.strictEqual(after.history.at(-1)?.reason, "Its ModelDeployment was deleted.")
      const before = Option.getOrThrow(yield* runs.observe(adopted.id))
      assert.deepStrictEqual([before.phase, before.revision?.status], ["activated", "active"])
      assert.deepStrictEqual((yield* audited(caller.orgId)).slice(2), ["updated", "updated"])
      // Without the model's ID, the object gets its own model again.
      const own = Option.getOrThrow(yield* runs.observe(yield* applied.adopt(input(caller.orgId, "second"))))
      assert.notStrictEqual(own.modelId, modelId)
    })
  )

  it.effect("an object cannot name a model that belongs to another organization, is deleted, has another repository, or is used by another object", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const runs = yield* Runs
      const [mine, other] = [yield* makeCaller("applied-refused"), yield* makeCaller("applied-refused-other")]
      const orgId = mine.caller.orgId
      const modelOf = Effect.fnUntraced(function* ({ caller }: typeof mine, slug: string) {
        const { id } = yield* (yield* Deployments).create(newModel(caller, `k-${slug}`, slug))
        return Option.getOrThrow(yield* runs.observe(id)).modelId
      })
      const adoptNamed = (name: string, modelId: AdoptInput["modelId"], repo = "seatrial/tiny-chat") =>
        Effect.flip(applied.adopt(input(orgId, name, { modelId, source: { kind: "model_hub", repo } })))
      const foreign = yield* adoptNamed("a", yield* modelOf(other, "theirs"))
      const model = yield* modelOf(mine, "mine")
      const objects = yield* applied.adopt(input(orgId, "owner"))
      const ownModel = Option.getOrThrow(yield* runs.observe(objects)).modelId
      yield* applied.adopt(input(orgId, "gone"))
      const gone = Option.getOrThrow(yield* applied.find(place("gone"))).modelId
      yield* applied.retire(place("gone"))
      assert.deepInclude(foreign, { _tag: "NamedModelRefused", why: "NotFound", conflict: "" })
      assert.deepStrictEqual(yield* adoptNamed("a", gone), foreign)
      assert.deepInclude(yield* adoptNamed("a", model, "other/repository"), { why: "OtherRepository", conflict: "seatrial/tiny-chat" })
      assert.deepInclude(yield* adoptNamed("a", ownModel), { why: "Applied", conflict: "seatrial/owner" })
      assert.isTrue(Option.isNone(yield* applied.find(place("a"))))
      // Of two concurrent objects, one is refused.
      const both = yield* Effect.forEach(["b", "c"], (name) => Effect.exit(applied.adopt(input(orgId, name, { modelId: model }))), { concurrency: "unbounded" })
      assert.deepStrictEqual(both.map(({ _tag }) => _tag).toSorted(), ["Failure", "Success"])
    })
  )

  it.effect("reports whether an organization may deploy", () =>
    Effect.gen(function* () {
      const applied = yield* AppliedResources
      const { caller } = yield* makeCaller("applied-owner")
      assert.deepStrictEqual(yield* applied.owner("applied-owner"), Option.some({ orgId: caller.orgId, active: true, firstPurchase: true, usedUp: null }))
      assert.isTrue(Option.isNone(yield* applied.owner("nobody")))
      const sql = yield* PgClient.PgClient
      const usedUp = Effect.map(applied.owner("applied-owner"), (owner) => Option.getOrThrow(owner).usedUp)
      yield* sql`UPDATE organizations SET prepaid = true, spend_limited = true WHERE id = ${caller.orgId}`
      assert.strictEqual(yield* usedUp, null)
      yield* sql`UPDATE organizations SET day_limit_micros = 0 WHERE id = ${caller.orgId}`
      assert.strictEqual(yield* usedUp, "day")
      yield* sql`DELETE FROM purchases WHERE org_id = ${caller.orgId}`
      assert.strictEqual(yield* usedUp, "balance")
    })
  )
})
