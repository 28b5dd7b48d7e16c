import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each } from "./KubeServer.ts"
import { type Behaviours, configMap, openStage, pod } from "./Stage.ts"

/** Create, read, replace, patch, and the answers to refused requests. */
export const objects: Behaviours = {
  "an object is created once; a second create is a conflict that names it": Effect.gen(function* () {
    const { configMaps, post } = yield* openStage
    const created = yield* post(configMaps, configMap("once", { a: "1" }))
    assert.deepStrictEqual(
      [created.status, at(created.body, "data"), at(created.body, "kind"), at(created.body, "apiVersion")],
      [201, { a: "1" }, "ConfigMap", "v1"]
    )
    assert.isString(at(created.body, "metadata.uid"))
    assert.match(String(at(created.body, "metadata.creationTimestamp")), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const again = yield* post(configMaps, configMap("once", { a: "2" }))
    assert.strictEqual(again.status, 409)
    assert.deepStrictEqual(again.body, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'configmaps "once" already exists',
      reason: "AlreadyExists",
      details: { name: "once", kind: "configmaps" },
      code: 409
    })
  }),

  "a missing object is answered with a Status with reason, code and details": Effect.gen(function* () {
    const { get, group, namespace } = yield* openStage
    const missing = yield* get(group("batch/v1", "jobs/none"))
    assert.strictEqual(missing.status, 404)
    assert.deepStrictEqual(missing.body, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'jobs.batch "none" not found',
      reason: "NotFound",
      details: { name: "none", group: "batch", kind: "jobs" },
      code: 404
    })
    const nowhere = yield* get(`/api/v1/namespaces/${namespace}-none/configmaps`)
    assert.deepStrictEqual([nowhere.status, at(nowhere.body, "items")], [200, []])
    const lost = yield* (yield* openStage).post(`/api/v1/namespaces/${namespace}-none/configmaps`, configMap("a"))
    assert.deepStrictEqual([lost.status, at(lost.body, "message")], [404, `namespaces "${namespace}-none" not found`])
  }),

  "an invalid name is refused with the field": Effect.gen(function* () {
    const { configMaps, post } = yield* openStage
    const refused = yield* post(configMaps, configMap("Not_A_Name"))
    assert.deepStrictEqual(
      [refused.status, at(refused.body, "reason"), at(refused.body, "details.causes.0.field"), at(refused.body, "details.causes.0.reason")],
      [422, "Invalid", "metadata.name", "FieldValueInvalid"]
    )
    const nameless = yield* post(configMaps, { metadata: {} })
    assert.deepStrictEqual(
      [nameless.status, at(nameless.body, "details.causes.0.reason"), at(nameless.body, "details.causes.0.message")],
      [422, "FieldValueRequired", "Required value: name or generateName is required"]
    )
    const label = yield* post(configMaps, configMap("label", {}, { labels: { a: "not a value" } }))
    assert.deepStrictEqual([label.status, at(label.body, "details.causes.0.field")], [422, "metadata.labels"])
  }),

  "a generated name has its prefix and a different suffix each time": Effect.gen(function* () {
    const { configMaps, post } = yield* openStage
    const names = yield* Effect.forEach([1, 2], () =>
      Effect.map(post(configMaps, { metadata: { generateName: "gen-" } }), ({ body }) => at(body, "metadata.name"))
    )
    for (const name of names) assert.match(String(name), /^gen-[a-z0-9]{5}$/)
    assert.notStrictEqual(names[0], names[1])
  }),

  "a replacement of an older version is a conflict, and changes nothing": Effect.gen(function* () {
    const { configMaps, get, post, put } = yield* openStage
    const created = yield* post(configMaps, configMap("versions", { a: "1" }))
    const newer = yield* put(`${configMaps}/versions`, { ...created.body, data: { a: "2" } })
    assert.strictEqual(newer.status, 200)
    assert.notStrictEqual(at(newer.body, "metadata.resourceVersion"), at(created.body, "metadata.resourceVersion"))
    const stale = yield* put(`${configMaps}/versions`, { ...created.body, data: { a: "3" } })
    assert.strictEqual(stale.status, 409)
    assert.deepStrictEqual(stale.body, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message:
        'Operation cannot be fulfilled on configmaps "versions": the object has been modified; please apply your changes to the latest version and try again',
      reason: "Conflict",
      details: { name: "versions", kind: "configmaps" },
      code: 409
    })
    assert.deepStrictEqual(at((yield* get(`${configMaps}/versions`)).body, "data"), { a: "2" })
    const other = yield* put(`${configMaps}/versions`, {
      ...newer.body,
      metadata: { ...Object(at(newer.body, "metadata")), uid: "00000000-0000-4000-8000-000000000000" }
    })
    assert.deepStrictEqual([other.status, at(other.body, "reason")], [409, "Conflict"])
  }),

  "a replacement without a version replaces any version": Effect.gen(function* () {
    const { configMaps, post, put } = yield* openStage
    yield* post(configMaps, configMap("blind", { a: "1" }))
    const replaced = yield* put(`${configMaps}/blind`, configMap("blind", { b: "2" }))
    assert.deepStrictEqual([replaced.status, at(replaced.body, "data")], [200, { b: "2" }])
    const missing = yield* put(`${configMaps}/nothing`, configMap("nothing"))
    assert.strictEqual(missing.status, 404)
    const misnamed = yield* put(`${configMaps}/blind`, configMap("other"))
    assert.deepStrictEqual([misnamed.status, at(misnamed.body, "reason")], [400, "BadRequest"])
  }),

  "a merge patch adds, replaces and removes; with an outdated version it is refused": Effect.gen(function* () {
    const { configMaps, patch, post } = yield* openStage
    const created = yield* post(configMaps, configMap("merged", { a: "1", b: "2" }))
    const merged = yield* patch("merge", `${configMaps}/merged`, { data: { a: null, c: "3" }, metadata: { labels: { x: "y" } } })
    assert.deepStrictEqual([at(merged.body, "data"), at(merged.body, "metadata.labels")], [{ b: "2", c: "3" }, { x: "y" }])
    const stale = yield* patch("merge", `${configMaps}/merged`, {
      metadata: { resourceVersion: at(created.body, "metadata.resourceVersion") },
      data: { d: "4" }
    })
    assert.deepStrictEqual([stale.status, at(stale.body, "reason")], [409, "Conflict"])
  }),

  "a write that changes nothing keeps the version": Effect.gen(function* () {
    const { configMaps, patch, post } = yield* openStage
    const created = yield* post(configMaps, configMap("same", { a: "1" }))
    const same = yield* patch("merge", `${configMaps}/same`, { data: { a: "1" } })
    assert.deepStrictEqual(at(same.body, "metadata.resourceVersion"), at(created.body, "metadata.resourceVersion"))
  }),

  "a JSON patch edits paths, and changes nothing if a test in it fails": Effect.gen(function* () {
    const { configMaps, patch, post } = yield* openStage
    yield* post(configMaps, configMap("places", { a: "1" }))
    const edited = yield* patch("json", `${configMaps}/places`, [
      { op: "test", path: "/data/a", value: "1" },
      { op: "replace", path: "/data/a", value: "2" },
      { op: "add", path: "/data/b", value: "3" }
    ])
    assert.deepStrictEqual(at(edited.body, "data"), { a: "2", b: "3" })
    const refused = yield* patch("json", `${configMaps}/places`, [
      { op: "test", path: "/data/a", value: "1" },
      { op: "remove", path: "/data/b" }
    ])
    assert.deepStrictEqual([refused.status, at(refused.body, "reason")], [422, "Invalid"])
  }),

  "a strategic merge patch merges lists of built-in kinds by their keys": Effect.gen(function* () {
    const { patch, pods, post } = yield* openStage
    yield* post(
      pods,
      pod(
        "listed",
        {},
        {
          containers: [
            { name: "a", image: "one" },
            { name: "b", image: "two" }
          ]
        }
      )
    )
    const patched = yield* patch("strategic", `${pods}/listed`, { spec: { containers: [{ name: "b", image: "three" }] } })
    assert.deepStrictEqual(each(at(patched.body, "spec.containers"), "image"), ["one", "three"])
  }),

  "a dry run answers like a write and stores nothing": Effect.gen(function* () {
    const { configMaps, get, post } = yield* openStage
    const tried = yield* post(`${configMaps}?dryRun=All`, configMap("dry"))
    assert.strictEqual(tried.status, 201)
    assert.strictEqual((yield* get(`${configMaps}/dry`)).status, 404)
  }),

  "a body of another kind is refused": Effect.gen(function* () {
    const { call, configMaps } = yield* openStage
    const other = yield* call("POST", configMaps, pod("other"))
    assert.deepStrictEqual([other.status, at(other.body, "reason")], [400, "BadRequest"])
  }),

  "only mutable fields of a pod's spec change, and its status only by its own path": Effect.gen(function* () {
    const { patch, pods, post } = yield* openStage
    const created = yield* post(pods, pod("fixed"))
    assert.deepStrictEqual(
      [at(created.body, "status.phase"), at(created.body, "spec.restartPolicy"), at(created.body, "spec.terminationGracePeriodSeconds")],
      ["Pending", "Always", 30]
    )
    const command = yield* patch("strategic", `${pods}/fixed`, { spec: { containers: [{ name: "main", command: ["other"] }] } })
    assert.deepStrictEqual([command.status, at(command.body, "reason"), at(command.body, "details.causes.0.reason")], [422, "Invalid", "FieldValueForbidden"])
    const image = yield* patch("strategic", `${pods}/fixed`, { spec: { containers: [{ name: "main", image: "engine:2" }] } })
    assert.deepStrictEqual([image.status, at(image.body, "spec.containers.0.image")], [200, "engine:2"])
    const ignored = yield* patch("merge", `${pods}/fixed`, { status: { phase: "Running" } })
    assert.strictEqual(at(ignored.body, "status.phase"), "Pending")
    const patched = yield* patch("merge", `${pods}/fixed/status`, { status: { phase: "Running" }, spec: { nodeName: "nowhere" } })
    assert.deepStrictEqual([at(patched.body, "status.phase"), at(patched.body, "spec.nodeName")], ["Running", undefined])
    const empty = yield* post(pods, pod("empty", {}, { containers: [] }))
    assert.deepStrictEqual(
      [empty.status, at(empty.body, "details.causes.0.field"), at(empty.body, "details.causes.0.reason")],
      [422, "spec.containers", "FieldValueRequired"]
    )
  }),

  "a pod is bound to a node once": Effect.gen(function* () {
    const { get, pods, post } = yield* openStage
    yield* post(pods, pod("placed", {}, { schedulerName: "nobody" }))
    const binding = (node: string) => ({
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: "placed" },
      target: { apiVersion: "v1", kind: "Node", name: node }
    })
    const bound = yield* post(`${pods}/placed/binding`, binding("contract-0"))
    const twice = yield* post(`${pods}/placed/binding`, binding("contract-1"))
    assert.deepStrictEqual([bound.status, at(bound.body, "status"), twice.status, at(twice.body, "reason")], [201, "Success", 409, "Conflict"])
    const placed = yield* get(`${pods}/placed`)
    assert.deepStrictEqual([at(placed.body, "spec.nodeName"), each(at(placed.body, "status.conditions"), "type")], ["contract-0", ["PodScheduled"]])
    const unplaced = yield* get(`${pods}/nothing/log`)
    assert.deepStrictEqual([unplaced.status, at(unplaced.body, "reason")], [404, "NotFound"])
  }),

  "a Secret's stringData is stored encoded, and its type is immutable": Effect.gen(function* () {
    const { core, patch, post } = yield* openStage
    const created = yield* post(core("secrets"), { apiVersion: "v1", kind: "Secret", metadata: { name: "token" }, stringData: { a: "hf" } })
    assert.deepStrictEqual([at(created.body, "data"), at(created.body, "type"), at(created.body, "stringData")], [{ a: "aGY=" }, "Opaque", undefined])
    const typed = yield* patch("merge", `${core("secrets")}/token`, { type: "other" })
    assert.deepStrictEqual([typed.status, at(typed.body, "details.causes.0.field")], [422, "type"])
  }),

  "a lease can be taken only with its latest version": Effect.gen(function* () {
    const { group, post, put } = yield* openStage
    const leases = group("coordination.k8s.io/v1", "leases")
    const lease = (holder: string, metadata: object = {}) => ({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "leader", ...metadata },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: 15,
        renewTime: "2026-01-01T00:00:00.000001Z",
        acquireTime: "2026-01-01T00:00:00.000000Z",
        leaseTransitions: 0
      }
    })
    const created = yield* post(leases, lease("one"))
    assert.deepStrictEqual([created.status, at(created.body, "spec.renewTime")], [201, "2026-01-01T00:00:00.000001Z"])
    const version = { resourceVersion: at(created.body, "metadata.resourceVersion") }
    const first = yield* put(`${leases}/leader`, lease("two", version))
    const second = yield* put(`${leases}/leader`, lease("three", version))
    assert.deepStrictEqual([first.status, second.status, at(second.body, "reason")], [200, 409, "Conflict"])
    const blind = yield* put(`${leases}/leader`, lease("four"))
    assert.deepStrictEqual([blind.status, at(blind.body, "details.causes.0.field")], [422, "metadata.resourceVersion"])
  }),

  "an event is stored unchanged and readable in both API groups": Effect.gen(function* () {
    const { core, get, group, namespace, post } = yield* openStage
    const involvedObject = { kind: "Pod", namespace, name: "a", apiVersion: "v1" }
    const event = { metadata: { name: "told.1", namespace }, involvedObject, reason: "Tested", message: "It was.", type: "Normal", count: 1 }
    const created = yield* post(core("events"), event)
    assert.deepStrictEqual([created.status, at(created.body, "involvedObject"), at(created.body, "message")], [201, involvedObject, "It was."])
    const newer = yield* get(group("events.k8s.io/v1", "events/told.1"))
    assert.deepStrictEqual([at(newer.body, "regarding"), at(newer.body, "note"), at(newer.body, "deprecatedCount")], [involvedObject, "It was.", 1])
    const mine = yield* get(`${core("events")}?fieldSelector=${encodeURIComponent("involvedObject.name=a,type=Normal")}`)
    const otherEvents = yield* get(`${core("events")}?fieldSelector=${encodeURIComponent("involvedObject.name=b")}`)
    assert.deepStrictEqual([each(at(mine.body, "items"), "metadata.name"), at(otherEvents.body, "items")], [["told.1"], []])
    const elsewhere = yield* post(core("events"), { ...event, metadata: { name: "told.2" }, involvedObject: { ...involvedObject, namespace: "elsewhere" } })
    assert.strictEqual(elsewhere.status, 422)
  })
}
