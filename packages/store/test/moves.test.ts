import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { DeploymentId, OrgId } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Deployments, type Endpoint, Routes, Runs } from "../src/index.ts"
import { layerStore, soon } from "./stage.ts"
import { makeCaller, makeServing, newModel, walk } from "./support/index.ts"

const endpoint = (name: string): Endpoint => ({ url: `http://10.0.0.1:80${name.charCodeAt(0)}`, pod: `pod-${name}` })

const observed = Effect.fnUntraced(function* (id: DeploymentId) {
  return Option.getOrThrow(yield* (yield* Runs).observe(id))
})

/** Publishes endpoints that a gateway has reached. */
const serveWith = Effect.fnUntraced(function* (id: DeploymentId, orgId: OrgId, names: ReadonlyArray<string>) {
  const [runs, routes] = [yield* Runs, yield* Routes]
  const endpoints = names.map(endpoint)
  yield* runs.publishEndpoints(id, orgId, endpoints)
  const revisionId = Option.getOrThrow(Option.fromNullishOr((yield* observed(id)).revision)).id
  for (const each of endpoints) yield* routes.markReachable({ ...each, orgId, revisionId, runtime: "reference" })
  return revisionId
})

/** A model with that many engines whose first revision was replaced a moment ago. */
const moving = Effect.fnUntraced(function* (slug: string, replicas: number, change: (revision: string) => string = () => "updated_at = updated_at") {
  const [deployments, runs, sql] = [yield* Deployments, yield* Runs, yield* PgClient.PgClient]
  const { caller } = yield* makeCaller(slug)
  const { orgId } = caller
  const { modelId, operation, revisionId } = yield* makeServing(caller, "k1")
  yield* sql`UPDATE models SET replicas = ${replicas} WHERE id = ${modelId}`
  yield* serveWith(operation.id, orgId, ["a", "b"])
  const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
  yield* walk(caller, id, "activating")
  const next = yield* serveWith(id, orgId, ["c"])
  yield* sql.unsafe(`UPDATE revisions SET ${change(next)}`)
  yield* runs.activate({ id, orgId, from: "activating" })
  return { caller, orgId, modelId, name: `${slug}/tiny`, earlier: { id: operation.id, revisionId }, next: { id, revisionId: next } }
})

layer(layerStore, { excludeTestServices: true })("a model that moves to a new revision", (it) => {
  const podsOf = Effect.fnUntraced(function* (orgId: OrgId, name: string) {
    const routes = yield* Routes
    return Option.getOrThrow(yield* routes.find(orgId, name))
  })

  it.effect("is served by both revisions until the earlier one is withdrawn, and each endpoint names its revision", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { earlier, name, next, orgId } = yield* moving("moves", 3)
      yield* soon(Effect.map(podsOf(orgId, name), ({ revisionId }) => revisionId === next.revisionId))
      const route = yield* podsOf(orgId, name)
      assert.deepStrictEqual(
        route.endpoints.map(({ pod, retiring }) => [pod, retiring?.revisionId, retiring?.engineVersion]),
        [
          ["pod-c", undefined, undefined],
          ["pod-a", earlier.revisionId, "reference-1"],
          ["pod-b", earlier.revisionId, "reference-1"]
        ]
      )
      assert.deepStrictEqual((yield* observed(earlier.id)).newer, ["pod-c"])
      assert.strictEqual((yield* observed(next.id)).earlier, 2)
      assert.isNull((yield* observed(next.id)).newer)
      yield* runs.publishEndpoints(earlier.id, orgId, [endpoint("a")])
      assert.strictEqual((yield* observed(next.id)).earlier, 1)
      yield* runs.publishEndpoints(earlier.id, orgId, [])
      yield* soon(Effect.map(podsOf(orgId, name), ({ endpoints }) => endpoints.length === 1))
    })
  )

  it.effect("keeps the earlier engines if it is scaled to one, until a gateway has reached one of the new revision and they leave", () =>
    Effect.gen(function* () {
      const [runs, sql] = [yield* Runs, yield* PgClient.PgClient]
      const { earlier, modelId, name, next, orgId } = yield* moving("shrinks", 3)
      const pods = Effect.map(podsOf(orgId, name), ({ endpoints }) => endpoints.map(({ pod }) => pod).join())
      yield* runs.publishEndpoints(next.id, orgId, [])
      yield* sql`UPDATE models SET replicas = 1 WHERE id = ${modelId}`
      yield* soon(Effect.map(pods, (now) => now === "pod-a,pod-b"))
      assert.deepStrictEqual([(yield* observed(earlier.id)).newer, (yield* observed(next.id)).earlier], [[], 2])
      // An engine that no gateway has reached counts for neither revision.
      yield* runs.publishEndpoints(next.id, orgId, [endpoint("d")])
      yield* runs.publishEndpoints(earlier.id, orgId, [endpoint("a"), endpoint("e")])
      assert.deepStrictEqual([(yield* observed(earlier.id)).newer, (yield* observed(next.id)).earlier], [[], 1])
      yield* serveWith(next.id, orgId, ["d"])
      yield* soon(Effect.map(pods, (now) => now === "pod-d,pod-a"))
      assert.deepStrictEqual((yield* observed(earlier.id)).newer, ["pod-d"])
      yield* runs.publishEndpoints(earlier.id, orgId, [])
      yield* soon(Effect.map(pods, (now) => now === "pod-d"))
      assert.isNull((yield* observed(earlier.id)).newer)
    })
  )

  it.effect("shows a further run how many engines of each revision answer", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const { caller, modelId, next } = yield* moving("further", 3)
      const { id } = yield* deployments.create(newModel(caller, "k3", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      assert.deepInclude((yield* observed(id)).predecessor, { run: next.id, replicas: 1, earlier: 2 })
    })
  )

  const load = Effect.fnUntraced(function* (orgId: OrgId, modelId: string, pod: string, answered: number, failed: number) {
    const sql = yield* PgClient.PgClient
    yield* sql`
      INSERT INTO endpoint_loads (org_id, model_id, gateway_id, pod, running, waiting, answered, failed, at)
      VALUES (${orgId}, ${modelId}, 'g', ${pod}, 0, 0, ${answered}, ${failed}, now())`
  })

  it.effect("returns to the earlier one once, with an audit event, and does not come back by itself", () =>
    Effect.gen(function* () {
      const [runs, sql] = [yield* Runs, yield* PgClient.PgClient]
      const { earlier, modelId, name, next, orgId } = yield* moving("back", 3)
      yield* load(orgId, modelId, "pod-a", 90, 1)
      yield* load(orgId, modelId, "pod-c", 2, 8)
      yield* load(orgId, modelId, "pod-of-nobody", 1, 1)
      const answers = Option.getOrThrow(yield* runs.moveAnswers(next.id, orgId))
      assert.strictEqual(answers.to, earlier.revisionId)
      assert.sameDeepMembers(
        [...answers.counters],
        [
          { key: "g pod-a", isEarlier: true, answered: 90, failed: 1 },
          { key: "g pod-c", isEarlier: false, answered: 2, failed: 8 }
        ]
      )
      assert.isTrue(Option.isNone(yield* runs.moveAnswers(earlier.id, orgId)))

      assert.isFalse(yield* runs.moveBack({ id: earlier.id, orgId, to: next.revisionId, reason: "No." }))
      assert.isTrue(yield* runs.moveBack({ id: next.id, orgId, to: earlier.revisionId, reason: "8 of 10 requests failed." }))
      assert.isFalse(yield* runs.moveBack({ id: next.id, orgId, to: earlier.revisionId, reason: "Again." }))
      yield* soon(Effect.map(podsOf(orgId, name), ({ revisionId }) => revisionId === earlier.revisionId))
      const route = yield* podsOf(orgId, name)
      assert.deepStrictEqual(
        route.endpoints.map(({ pod, retiring }) => [pod, retiring?.revisionId]),
        [
          ["pod-a", undefined],
          ["pod-b", undefined],
          ["pod-c", next.revisionId]
        ]
      )
      const [one, other] = [yield* observed(earlier.id), yield* observed(next.id)]
      assert.deepStrictEqual([one.revision?.status, one.phase, one.earlier], ["active", "activated", 1])
      assert.deepStrictEqual([other.revision?.status, other.phase, other.newer], ["superseded", "activated", ["pod-a", "pod-b"]])
      const [audit] = yield* sql`SELECT actor_kind, action, before, after FROM audit_events WHERE org_id = ${orgId} ORDER BY created_at DESC, id DESC LIMIT 1`
      assert.containSubset(audit, {
        actor_kind: "system",
        action: "activated",
        before: { revision_id: next.revisionId },
        after: { revision_id: earlier.revisionId, deployment_id: earlier.id, reason: "8 of 10 requests failed." }
      })
      // The model does not return to the revision that it left.
      assert.isTrue(Option.isNone(yield* runs.moveAnswers(earlier.id, orgId)))
      assert.isFalse(yield* runs.moveBack({ id: earlier.id, orgId, to: next.revisionId, reason: "No." }))
    })
  )

  const apart: ReadonlyArray<readonly [why: string, replicas: number, change: (revision: string) => string]> = [
    ["one-engine", 1, () => "updated_at = updated_at"],
    ["other-engine", 3, (id) => `runtime = CASE id WHEN '${id}' THEN 'vllm' ELSE runtime END`],
    ["other-fields", 3, (id) => `capabilities = CASE id WHEN '${id}' THEN NULL ELSE capabilities END`],
    ["longer-context", 3, (id) => `max_model_len = max_model_len + CASE id WHEN '${id}' THEN 1 ELSE 0 END`],
    ["may-idle", 3, (id) => `settings = settings || CASE id WHEN '${id}' THEN '{"hold_seconds": 9}'::jsonb ELSE '{}' END`]
  ]
  for (const [why, replicas, change] of apart)
    it.effect(`moves at once if its revisions cannot answer the same requests: ${why}`, () =>
      Effect.gen(function* () {
        const { earlier, name, next, orgId } = yield* moving(why, replicas, change)
        yield* soon(Effect.map(podsOf(orgId, name), ({ revisionId }) => revisionId === next.revisionId))
        assert.deepStrictEqual((yield* podsOf(orgId, name)).endpoints, [endpoint("c")])
        assert.isNull((yield* observed(earlier.id)).newer)
        assert.strictEqual((yield* observed(next.id)).earlier, 0)
      })
    )
})
