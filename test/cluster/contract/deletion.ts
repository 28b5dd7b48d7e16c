import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each, eventually, type Reply } from "./KubeServer.ts"
import { type Behaviours, configMap, openStage, pod } from "./Stage.ts"

const owner = (reply: Reply, more: object = {}) => ({
  ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: at(reply.body, "metadata.name"), uid: at(reply.body, "metadata.uid"), ...more }]
})
const gone = ({ status }: Reply) => status === 404

/** Deletion: preconditions, grace, finalizers, and what goes with an owner. */
export const deletion: Behaviours = {
  "a deleted object is gone, and the answer names it": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    const created = yield* post(configMaps, configMap("plain"))
    const answer = yield* remove(`${configMaps}/plain`)
    assert.deepStrictEqual([answer.status, at(answer.body, "kind"), at(answer.body, "status")], [200, "Status", "Success"])
    assert.deepStrictEqual(at(answer.body, "details"), { name: "plain", kind: "configmaps", uid: at(created.body, "metadata.uid") ?? null })
    assert.strictEqual((yield* get(`${configMaps}/plain`)).status, 404)
    assert.strictEqual((yield* remove(`${configMaps}/plain`)).status, 404)
  }),

  "a delete of another uid or version deletes nothing": Effect.gen(function* () {
    const { configMaps, get, patch, post, remove } = yield* openStage
    const created = yield* post(configMaps, configMap("mine"))
    const uid = yield* remove(`${configMaps}/mine`, { preconditions: { uid: "00000000-0000-4000-8000-000000000000" } })
    assert.deepStrictEqual([uid.status, at(uid.body, "reason")], [409, "Conflict"])
    yield* patch("merge", `${configMaps}/mine`, { data: { a: "1" } })
    const version = yield* remove(`${configMaps}/mine`, { preconditions: { resourceVersion: at(created.body, "metadata.resourceVersion") } })
    assert.deepStrictEqual([version.status, at(version.body, "reason")], [409, "Conflict"])
    assert.strictEqual((yield* get(`${configMaps}/mine`)).status, 200)
    assert.strictEqual((yield* remove(`${configMaps}/mine`, { preconditions: { uid: at(created.body, "metadata.uid") } })).status, 200)
  }),

  "a finalizer delays the deletion until it is removed, and none can be added": Effect.gen(function* () {
    const { configMaps, get, patch, post, remove } = yield* openStage
    yield* post(configMaps, configMap("held", {}, { finalizers: ["example.dev/hold"] }))
    const held = yield* remove(`${configMaps}/held`)
    assert.deepStrictEqual([held.status, at(held.body, "kind")], [200, "ConfigMap"])
    assert.isString(at(held.body, "metadata.deletionTimestamp"))
    assert.strictEqual(at(held.body, "metadata.deletionGracePeriodSeconds"), 0)
    const more = yield* patch("merge", `${configMaps}/held`, { metadata: { finalizers: ["example.dev/hold", "example.dev/more"] } })
    assert.deepStrictEqual([more.status, at(more.body, "details.causes.0.field")], [422, "metadata.finalizers"])
    const again = yield* remove(`${configMaps}/held`)
    assert.strictEqual(at(again.body, "metadata.deletionTimestamp"), at(held.body, "metadata.deletionTimestamp"))
    yield* patch("merge", `${configMaps}/held`, { metadata: { finalizers: null } })
    assert.strictEqual((yield* get(`${configMaps}/held`)).status, 404)
    const unqualified = yield* post(configMaps, configMap("wrong", {}, { finalizers: ["no slash"] }))
    assert.strictEqual(unqualified.status, 422)
  }),

  "a pod on a node has a grace period, which a second delete can shorten; a pod without a node is deleted at once": Effect.gen(function* () {
    const { get, pods, post, remove } = yield* openStage
    yield* post("/api/v1/nodes", { metadata: { name: "contract-grace" } })
    yield* post(pods, pod("graceful", {}, { nodeName: "contract-grace", terminationGracePeriodSeconds: 300 }))
    const leaving = yield* remove(`${pods}/graceful`)
    assert.deepStrictEqual([leaving.status, at(leaving.body, "metadata.deletionGracePeriodSeconds")], [200, 300])
    const shorter = yield* remove(`${pods}/graceful`, { gracePeriodSeconds: 100 })
    assert.strictEqual(at(shorter.body, "metadata.deletionGracePeriodSeconds"), 100)
    const longer = yield* remove(`${pods}/graceful`, { gracePeriodSeconds: 200 })
    assert.strictEqual(at(longer.body, "metadata.deletionGracePeriodSeconds"), 100)
    yield* remove(`${pods}/graceful`, { gracePeriodSeconds: 0 })
    assert.strictEqual((yield* get(`${pods}/graceful`)).status, 404)
    yield* post(pods, pod("unplaced", {}, { schedulerName: "nobody" }))
    yield* remove(`${pods}/unplaced`)
    assert.strictEqual((yield* get(`${pods}/unplaced`)).status, 404)
  }),

  "dependents are deleted after their owner, also in a chain": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    const first = yield* post(configMaps, configMap("first"))
    const second = yield* post(configMaps, configMap("second", {}, owner(first)))
    yield* post(configMaps, configMap("third", {}, owner(second)))
    yield* remove(`${configMaps}/first`, { propagationPolicy: "Background" })
    yield* eventually(get(`${configMaps}/third`), gone)
    assert.strictEqual((yield* get(`${configMaps}/second`)).status, 404)
  }),

  "an object whose owner never existed is deleted; an object with a second owner stays": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "never", uid: "00000000-0000-4000-8000-000000000000" }
    yield* post(configMaps, configMap("absent", {}, { ownerReferences: [reference] }))
    yield* eventually(get(`${configMaps}/absent`), gone)
    const one = yield* post(configMaps, configMap("one"))
    const two = yield* post(configMaps, configMap("two"))
    const both = [...owner(one).ownerReferences, ...owner(two).ownerReferences]
    yield* post(configMaps, configMap("both", {}, { ownerReferences: both }))
    yield* remove(`${configMaps}/one`)
    const remaining = yield* eventually(get(`${configMaps}/both`), ({ body }) => each(at(body, "metadata.ownerReferences"), "name").length === 1)
    assert.deepStrictEqual(each(at(remaining.body, "metadata.ownerReferences"), "name"), ["two"])
  }),

  "dependents stay if the owner orphans them": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    const keeper = yield* post(configMaps, configMap("keeper"))
    yield* post(configMaps, configMap("kept", {}, owner(keeper)))
    const answer = yield* remove(`${configMaps}/keeper`, { propagationPolicy: "Orphan" })
    assert.deepStrictEqual(at(answer.body, "metadata.finalizers"), ["orphan"])
    yield* eventually(get(`${configMaps}/keeper`), gone)
    const remaining = yield* get(`${configMaps}/kept`)
    assert.deepStrictEqual([remaining.status, at(remaining.body, "metadata.ownerReferences")], [200, undefined])
  }),

  "an owner that is deleted in the foreground is deleted last": Effect.gen(function* () {
    const { configMaps, get, patch, post, remove } = yield* openStage
    const front = yield* post(configMaps, configMap("front"))
    yield* post(configMaps, configMap("behind", {}, { ...owner(front, { blockOwnerDeletion: true }), finalizers: ["example.dev/hold"] }))
    const answer = yield* remove(`${configMaps}/front`, { propagationPolicy: "Foreground" })
    assert.deepStrictEqual(at(answer.body, "metadata.finalizers"), ["foregroundDeletion"])
    yield* eventually(get(`${configMaps}/behind`), ({ body }) => at(body, "metadata.deletionTimestamp") !== undefined)
    assert.strictEqual((yield* get(`${configMaps}/front`)).status, 200)
    yield* patch("merge", `${configMaps}/behind`, { metadata: { finalizers: null } })
    yield* eventually(get(`${configMaps}/front`), gone)
  }),

  "a namespace is deleted with its content, and accepts no new objects": Effect.gen(function* () {
    const { configMaps, get, namespace, patch, post, remove } = yield* openStage
    yield* post(configMaps, configMap("inside", {}, { finalizers: ["example.dev/hold"] }))
    const answer = yield* remove(`/api/v1/namespaces/${namespace}`)
    assert.strictEqual(at(answer.body, "status.phase"), "Terminating")
    const refused = yield* post(configMaps, configMap("late"))
    assert.deepStrictEqual(
      [refused.status, at(refused.body, "reason"), at(refused.body, "details.causes.0.reason")],
      [403, "Forbidden", "NamespaceTerminating"]
    )
    yield* eventually(get(`${configMaps}/inside`), ({ body }) => at(body, "metadata.deletionTimestamp") !== undefined)
    yield* patch("merge", `${configMaps}/inside`, { metadata: { finalizers: null } })
    yield* eventually(get(`/api/v1/namespaces/${namespace}`), gone)
    assert.strictEqual((yield* remove("/api/v1/namespaces/default")).status, 403)
  }),

  "contradictory and unknown options are refused": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    yield* post(configMaps, configMap("options"))
    const unknown = yield* remove(`${configMaps}/options`, { propagationPolicy: "Sideways" })
    assert.deepStrictEqual([unknown.status, at(unknown.body, "reason")], [422, "Invalid"])
    const both = yield* remove(`${configMaps}/options`, { propagationPolicy: "Orphan", orphanDependents: true })
    assert.deepStrictEqual([both.status, at(both.body, "reason")], [422, "Invalid"])
    assert.strictEqual((yield* get(`${configMaps}/options`)).status, 200)
  })
}
