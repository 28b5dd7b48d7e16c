import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each, type Reply } from "./KubeServer.ts"
import { type Behaviours, configMap, openStage, pod } from "./Stage.ts"
import { installWidgets, widget } from "./widgets.ts"

const open = Effect.gen(function* () {
  yield* installWidgets
  const stage = yield* openStage
  return { ...stage, widgets: stage.group("contract.dev/v1", "widgets") }
})

const managers = (reply: Reply) => {
  const fields = at(reply.body, "metadata.managedFields")
  return each(fields, "manager").map(
    (name, index) => `${name} ${each(fields, "operation")[index]}${each(fields, "subresource")[index] === "status" ? " status" : ""}`
  )
}

/** Server-side apply: who owns what, conflicts, force. */
export const applying: Behaviours = {
  "creates a missing object, and a repetition changes nothing": Effect.gen(function* () {
    const { apply, configMaps } = yield* open
    const created = yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    assert.deepStrictEqual([created.status, at(created.body, "data"), managers(created)], [201, { a: "1" }, ["one Apply"]])
    const again = yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    assert.deepStrictEqual([again.status, at(again.body, "metadata.resourceVersion")], [200, at(created.body, "metadata.resourceVersion")])
  }),

  "keeps fields of other managers, and removes its own fields that are no longer applied": Effect.gen(function* () {
    const { apply, configMaps, patch } = yield* open
    yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1", b: "2" }))
    yield* patch("merge", `${configMaps}/a`, { data: { other: "x" } })
    const next = yield* apply(`${configMaps}/a`, "one", configMap("a", { b: "2" }))
    assert.deepStrictEqual([at(next.body, "data"), managers(next)], [{ b: "2", other: "x" }, ["one Apply", "contract Update"]])
  }),

  "of another manager's field is a conflict that names the manager and the field": Effect.gen(function* () {
    const { apply, configMaps, get } = yield* open
    yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    const refused = yield* apply(`${configMaps}/a`, "two", configMap("a", { a: "2" }))
    assert.strictEqual(refused.status, 409)
    assert.deepStrictEqual(refused.body, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'Apply failed with 1 conflict: conflict with "one": .data.a',
      reason: "Conflict",
      details: { causes: [{ reason: "FieldManagerConflict", message: 'conflict with "one"', field: ".data.a" }] },
      code: 409
    })
    assert.deepStrictEqual(at((yield* get(`${configMaps}/a`)).body, "data"), { a: "1" })
  }),

  "of the same value shares the field, which is removed when both managers release it": Effect.gen(function* () {
    const { apply, configMaps } = yield* open
    yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    const shared = yield* apply(`${configMaps}/a`, "two", configMap("a", { a: "1" }))
    assert.deepStrictEqual([shared.status, managers(shared).toSorted()], [200, ["one Apply", "two Apply"]])
    const left = yield* apply(`${configMaps}/a`, "one", configMap("a"))
    assert.deepStrictEqual(at(left.body, "data"), { a: "1" })
    const gone = yield* apply(`${configMaps}/a`, "two", configMap("a"))
    assert.strictEqual(at(gone.body, "data"), undefined)
  }),

  "by force takes the field from its owner": Effect.gen(function* () {
    const { apply, configMaps } = yield* open
    yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    const forced = yield* apply(`${configMaps}/a`, "two", configMap("a", { a: "2" }), "&force=true")
    assert.deepStrictEqual([forced.status, at(forced.body, "data"), managers(forced)], [200, { a: "2" }, ["two Apply"]])
  }),

  "with an outdated version or another UID is refused": Effect.gen(function* () {
    const { apply, configMaps, patch } = yield* open
    const created = yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "1" }))
    yield* patch("merge", `${configMaps}/a`, { data: { b: "2" } })
    const { resourceVersion } = { resourceVersion: at(created.body, "metadata.resourceVersion") }
    const stale = yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "3" }, { resourceVersion }))
    assert.deepStrictEqual([stale.status, at(stale.body, "reason")], [409, "Conflict"])
    const other = yield* apply(`${configMaps}/a`, "one", configMap("a", { a: "3" }, { uid: "00000000-0000-4000-8000-000000000000" }))
    assert.deepStrictEqual([other.status, at(other.body, "details.causes.0.field")], [422, "metadata.uid"])
    const absent = yield* apply(`${configMaps}/none`, "one", configMap("none", {}, { uid: "00000000-0000-4000-8000-000000000000" }))
    assert.deepStrictEqual([absent.status, at(absent.body, "reason")], [409, "Conflict"])
  }),

  "without a field manager is refused": Effect.gen(function* () {
    const { call, configMaps } = yield* open
    const type = "application/apply-patch+yaml"
    const nobody = yield* call("PATCH", `${configMaps}/a`, configMap("a"), { type })
    assert.deepStrictEqual([nobody.status, at(nobody.body, "reason"), at(nobody.body, "details.causes.0.field")], [422, "Invalid", "fieldManager"])
    const typeless = yield* call("PATCH", `${configMaps}/a?fieldManager=one`, { metadata: { name: "a" } }, { type })
    assert.deepStrictEqual([typeless.status, at(typeless.body, "reason")], [400, "BadRequest"])
    const managed = yield* call("PATCH", `${configMaps}/a?fieldManager=one`, configMap("a", {}, { managedFields: [{ manager: "x" }] }), { type })
    assert.strictEqual(managed.status, 400)
  }),

  "merges keyed lists by key and sets by member, and replaces atomic values": Effect.gen(function* () {
    const { apply, widgets } = yield* open
    const path = `${widgets}/lists`
    yield* apply(path, "one", widget("lists", { model: "abc", parts: [{ name: "a", n: 1 }], tags: ["x"], plain: [1], whole: { a: "1" } }))
    const both = yield* apply(
      path,
      "two",
      widget("lists", {
        model: "abc",
        parts: [
          { name: "b", n: 2 },
          { name: "a", m: 3 }
        ],
        tags: ["y"]
      })
    )
    // In the order of who applied last.
    assert.deepStrictEqual(at(both.body, "spec.parts"), [
      { name: "b", n: 2 },
      { name: "a", n: 1, m: 3 }
    ])
    assert.deepStrictEqual(at(both.body, "spec.tags"), ["x", "y"])
    const atomic = yield* apply(path, "two", widget("lists", { model: "abc", plain: [2], whole: { b: "2" } }))
    const fields = each(at(atomic.body, "details.causes"), "field")
    assert.deepStrictEqual([atomic.status, fields.toSorted()], [409, [".spec.plain", ".spec.whole"]])
    const less = yield* apply(path, "one", widget("lists", { model: "abc" }))
    assert.deepStrictEqual(
      [at(less.body, "spec.parts"), at(less.body, "spec.plain")],
      [
        [
          { name: "b", n: 2 },
          { name: "a", m: 3 }
        ],
        undefined
      ]
    )
  }),

  "of a status has its own owner and changes nothing else": Effect.gen(function* () {
    const { apply, widgets } = yield* open
    const path = `${widgets}/status`
    yield* apply(path, "one", widget("status", { model: "abc" }))
    const status = {
      apiVersion: "contract.dev/v1",
      kind: "Widget",
      metadata: { name: "status" },
      status: { phase: "Up", conditions: [{ type: "Ready", status: "True" }] }
    }
    const applied = yield* apply(`${path}/status`, "one", status, "&force=true")
    assert.deepStrictEqual([applied.status, at(applied.body, "status.phase"), managers(applied).toSorted()], [200, "Up", ["one Apply", "one Apply status"]])
    assert.strictEqual(at(applied.body, "metadata.generation"), 1)
    const unchanged = yield* apply(path, "one", widget("status", { model: "abc", size: 4 }))
    assert.deepStrictEqual([at(unchanged.body, "status.phase"), at(unchanged.body, "metadata.generation")], ["Up", 2])
    const missing = yield* apply(`${widgets}/none/status`, "one", { ...status, metadata: { name: "none" } })
    assert.strictEqual(missing.status, 404)
    const version = { resourceVersion: at(applied.body, "metadata.resourceVersion") }
    const stale = yield* apply(`${path}/status`, "one", { ...status, metadata: { name: "status", ...version }, status: { phase: "Old" } })
    assert.deepStrictEqual([stale.status, at(stale.body, "reason")], [409, "Conflict"])
  }),

  "of an unchanged pod changes nothing, although the server has set defaults": Effect.gen(function* () {
    const { apply, pods } = yield* open
    const wanted = pod(
      "filled",
      { labels: { app: "x" } },
      {
        schedulerName: "nobody",
        automountServiceAccountToken: false,
        containers: [
          {
            name: "main",
            image: "engine:1",
            env: [{ name: "A", value: "1" }],
            ports: [{ containerPort: 8000, name: "http" }],
            resources: { limits: { "nvidia.com/gpu": "1" } },
            volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
            readinessProbe: { httpGet: { path: "/health", port: 8000 }, periodSeconds: 1 }
          }
        ],
        volumes: [{ name: "scratch", emptyDir: {} }]
      }
    )
    const created = yield* apply(`${pods}/filled`, "operator", wanted, "&force=true")
    assert.strictEqual(created.status, 201)
    const again = yield* apply(`${pods}/filled`, "operator", wanted, "&force=true")
    assert.deepStrictEqual([again.status, at(again.body, "metadata.resourceVersion")], [200, at(created.body, "metadata.resourceVersion")])
    assert.deepStrictEqual(at(created.body, "spec.containers.0.resources"), { limits: { "nvidia.com/gpu": "1" }, requests: { "nvidia.com/gpu": "1" } })
  })
}
