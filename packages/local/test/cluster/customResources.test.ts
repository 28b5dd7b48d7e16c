import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, Client, crds, eventually, pod, pods, widget, widgetPath, widgets } from "./server.ts"

const withWidgets = Layer.effectDiscard(
  Effect.gen(function* () {
    const { post } = yield* Client
    yield* post(crds, widgets)
  })
).pipe(Layer.provideMerge(Client.layer))

layer(withWidgets, { excludeTestServices: true })("custom resources", (it) => {
  it.effect("a definition is established and served immediately, and removed with its objects", () =>
    Effect.gen(function* () {
      const { get, post, remove } = yield* Client
      const gadgets = {
        ...widgets,
        metadata: { name: "gadgets.example.dev" },
        spec: { ...widgets.spec, scope: "Cluster", names: { plural: "gadgets", kind: "Gadget" } }
      }
      const created = yield* post(crds, gadgets)
      assert.deepInclude(at(created.body, "status.conditions.1"), { type: "Established", status: "True" })
      const path = "/apis/example.dev/v1/gadgets"
      assert.strictEqual((yield* post(path, { metadata: { name: "a" }, spec: { model: "abc" } })).status, 201)
      const { body } = yield* get("/apis/example.dev/v1")
      const resources = at(body, "resources")
      assert.includeMembers(Array.isArray(resources) ? resources.map((one) => at(one, "name")) : [], ["gadgets", "gadgets/status", "widgets"])
      yield* remove(`${crds}/gadgets.example.dev`)
      yield* eventually(get(`${crds}/gadgets.example.dev`), ({ status }) => status === 404)
      assert.strictEqual((yield* get(`${path}/a`)).status, 404)
    })
  )

  it.effect("defaults are filled in, and unknown fields are dropped or, on request, refused", () =>
    Effect.gen(function* () {
      const { post } = yield* Client
      const odd = { model: "abc", free: { any: { thing: 1 } }, odd: 1 }
      const created = yield* post(widgetPath, widget("pruned", odd))
      assert.deepStrictEqual(at(created.body, "spec"), { model: "abc", free: { any: { thing: 1 } }, size: 3 })
      const strict = yield* post(`${widgetPath}?fieldValidation=Strict`, widget("strict", odd))
      assert.strictEqual(strict.status, 400)
      assert.include(String(at(strict.body, "message")), 'strict decoding error: unknown field "spec.odd"')
    })
  )

  const refused: ReadonlyArray<readonly [promise: string, spec: object, field: string, reason: string]> = [
    ["a required field", {}, "spec.model", "FieldValueRequired"],
    ["a type", { model: "abc", size: "three" }, "spec.size", "FieldValueTypeInvalid"],
    ["an enumeration", { model: "abc", mode: "medium" }, "spec.mode", "FieldValueNotSupported"],
    ["a pattern", { model: "ABC" }, "spec.model", "FieldValueInvalid"],
    ["a least and greatest value", { model: "abc", size: 10 }, "spec.size", "FieldValueInvalid"],
    ["a greatest length", { model: "abcdefghijkl" }, "spec.model", "FieldValueTooLong"],
    ["a keyed list's keys", { model: "abc", parts: [{ name: "a" }, { name: "a" }] }, "spec.parts[1]", "FieldValueDuplicate"]
  ]
  for (const [promise, spec, field, reason] of refused) {
    it.effect(`${promise} in the schema is enforced`, () =>
      Effect.gen(function* () {
        const { post } = yield* Client
        const { body, status } = yield* post(widgetPath, widget("refused", spec))
        assert.deepStrictEqual(
          [status, at(body, "reason"), at(body, "details.causes.0.field"), at(body, "details.causes.0.reason")],
          [422, "Invalid", field, reason]
        )
      })
    )
  }

  it.effect("the generation counts changes of the spec, and only the subresource changes the status", () =>
    Effect.gen(function* () {
      const { merge, post, put } = yield* Client
      const created = yield* post(widgetPath, { ...widget("generation", { model: "abc" }), status: { phase: "Sneaked" } })
      assert.deepStrictEqual([at(created.body, "metadata.generation"), at(created.body, "status")], [1, undefined])
      const path = `${widgetPath}/generation`
      const labelled = yield* merge(path, { metadata: { labels: { a: "b" } } })
      assert.strictEqual(at(labelled.body, "metadata.generation"), 1)
      const status = yield* put(`${path}/status`, { ...labelled.body, spec: { model: "other" }, status: { phase: "Up" } })
      assert.deepStrictEqual([at(status.body, "status.phase"), at(status.body, "spec.model"), at(status.body, "metadata.generation")], ["Up", "abc", 1])
      const intent = yield* merge(path, { spec: { size: 5 }, status: { phase: "Down" } })
      assert.deepStrictEqual([at(intent.body, "metadata.generation"), at(intent.body, "status.phase")], [2, "Up"])
      const stale = yield* put(`${path}/status`, { ...labelled.body, status: { phase: "Old" } })
      assert.strictEqual(stale.status, 409)
    })
  )

  it.effect("strategic merge patches are only for built-in kinds", () =>
    Effect.gen(function* () {
      const { call, post } = yield* Client
      yield* post(widgetPath, widget("media", { model: "abc" }))
      const { status } = yield* call("PATCH", `${widgetPath}/media`, {}, { type: "application/strategic-merge-patch+json" })
      assert.strictEqual(status, 415)
    })
  )

  it.effect("a table has the definition's columns", () =>
    Effect.gen(function* () {
      const { get, merge, post } = yield* Client
      yield* post(widgetPath, widget("columns", { model: "abc" }))
      yield* merge(`${widgetPath}/columns/status`, {
        status: {
          phase: "Up",
          conditions: [
            { type: "Other", status: "False" },
            { type: "Ready", status: "True" }
          ]
        }
      })
      const { body } = yield* get(`${widgetPath}/columns`, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" })
      const columns = at(body, "columnDefinitions")
      assert.deepStrictEqual(Array.isArray(columns) ? columns.map((one) => [at(one, "name"), at(one, "priority")]) : columns, [
        ["Name", 0],
        ["Phase", 0],
        ["Ready", 0],
        ["Model", 1],
        ["Age", 0]
      ])
      const cells = at(body, "rows.0.cells")
      assert.deepStrictEqual(Array.isArray(cells) ? cells.slice(0, 4) : cells, ["columns", "Up", "True", "abc"])
      assert.match(String(at(body, "rows.0.cells.4")), /^\d+s$/)
    })
  )

  it.effect("the schema is published for explain and validation", () =>
    Effect.gen(function* () {
      const { cluster, get } = yield* Client
      const index = yield* get(`/token/${cluster.token}/openapi/v3`)
      const paths = at(index.body, "paths")
      const url = Object.entries(paths !== null && typeof paths === "object" ? paths : {}).find(([name]) => name === "apis/example.dev/v1")
      assert.match(String(at(url?.[1], "serverRelativeURL")), new RegExp(`^/token/${cluster.token}/openapi/v3/apis/example.dev/v1\\?hash=`))
      const document = yield* get("/openapi/v3/apis/example.dev/v1")
      const schemas = at(document.body, "components.schemas")
      const schema = Object.entries(schemas !== null && typeof schemas === "object" ? schemas : {}).find(([name]) => name === "dev.example.v1.Widget")
      assert.strictEqual(at(schema?.[1], "properties.spec.properties.size.maximum"), 9)
    })
  )
})

layer(withWidgets, { excludeTestServices: true })("server-side apply", (it) => {
  const applied = (name: string, spec: object) => widget(name, spec)

  it.effect("creates objects, keeps the fields of other owners, and removes fields that it no longer sends", () =>
    Effect.gen(function* () {
      const { apply, merge } = yield* Client
      const path = `${widgetPath}/owned`
      const created = yield* apply(
        path,
        "one",
        applied("owned", {
          model: "abc",
          mode: "slow",
          parts: [
            { name: "a", n: 1 },
            { name: "b", n: 2 }
          ]
        })
      )
      assert.strictEqual(created.status, 201)
      yield* merge(path, { spec: { free: { mine: 1 } } })
      const next = yield* apply(path, "one", applied("owned", { model: "abc", parts: [{ name: "b", n: 3 }] }))
      assert.deepStrictEqual(at(next.body, "spec"), { model: "abc", size: 3, parts: [{ name: "b", n: 3 }], free: { mine: 1 } })
      assert.deepStrictEqual(at(next.body, "metadata.managedFields.0.fieldsV1"), {
        "f:spec": { "f:model": {}, "f:parts": { 'k:{"name":"b"}': { ".": {}, "f:n": {}, "f:name": {} } } }
      })
      const same = yield* apply(path, "one", applied("owned", { model: "abc", parts: [{ name: "b", n: 3 }] }))
      assert.deepStrictEqual(same.body, next.body)
    })
  )

  it.effect("a field that another owner set to another value is a conflict unless forced; equal values are shared", () =>
    Effect.gen(function* () {
      const { apply } = yield* Client
      const path = `${widgetPath}/contested`
      yield* apply(path, "one", applied("contested", { model: "abc", mode: "slow" }))
      const refused = yield* apply(path, "two", applied("contested", { model: "abc", mode: "fast" }))
      assert.deepStrictEqual([refused.status, at(refused.body, "reason"), at(refused.body, "details.causes.0.field")], [409, "Conflict", ".spec.mode"])
      assert.strictEqual(at(refused.body, "message"), 'Apply failed with 1 conflict: conflict with "one": .spec.mode')
      const forced = yield* apply(path, "two", applied("contested", { model: "abc", mode: "fast" }), true)
      assert.deepStrictEqual([forced.status, at(forced.body, "spec.mode")], [200, "fast"])
      // An owner that gave up a field does not remove it. A field with two owners stays if one of them gives it up.
      const silent = yield* apply(path, "one", applied("contested", { model: "abc" }))
      assert.strictEqual(at(silent.body, "spec.mode"), "fast")
      const shared = yield* apply(path, "two", applied("contested", { model: "abc" }))
      assert.deepStrictEqual(at(shared.body, "spec"), { model: "abc", size: 3 })
    })
  )

  it.effect("an update takes ownership of the fields that it changes", () =>
    Effect.gen(function* () {
      const { apply, merge } = yield* Client
      const path = `${widgetPath}/updated`
      yield* apply(path, "one", applied("updated", { model: "abc", mode: "slow" }))
      yield* merge(path, { spec: { mode: "fast" } })
      const refused = yield* apply(path, "one", applied("updated", { model: "abc", mode: "slow" }))
      assert.strictEqual(refused.status, 409)
      assert.match(String(at(refused.body, "message")), /conflict with "suite" using example.dev\/v1 at .*: \.spec\.mode$/)
    })
  )

  it.effect("the status is applied through its subresource, and the owners of the spec stay", () =>
    Effect.gen(function* () {
      const { apply, get } = yield* Client
      const path = `${widgetPath}/status-of`
      yield* apply(path, "one", applied("status-of", { model: "abc" }))
      const status = yield* apply(`${path}/status`, "one", {
        apiVersion: "example.dev/v1",
        kind: "Widget",
        metadata: { name: "status-of" },
        status: { phase: "Up" }
      })
      assert.deepStrictEqual([at(status.body, "status.phase"), at(status.body, "metadata.generation")], ["Up", 1])
      const again = yield* apply(path, "one", applied("status-of", { model: "abcd" }))
      assert.deepStrictEqual([at(again.body, "status.phase"), at(again.body, "spec.model")], ["Up", "abcd"])
      const managed = at((yield* get(path)).body, "metadata.managedFields")
      assert.deepStrictEqual(Array.isArray(managed) ? managed.map((one) => at(one, "subresource")) : managed, [undefined, "status"])
    })
  )

  it.effect("built-in lists are merged by their keys", () =>
    Effect.gen(function* () {
      const { apply, call } = yield* Client
      const path = `${pods}/applied`
      const container = (env: ReadonlyArray<object>, image = "a") => pod("applied", {}, { containers: [{ name: "main", image, env }] })
      yield* apply(path, "one", container([{ name: "A", value: "1" }]))
      const image = yield* apply(path, "two", pod("applied", {}, { containers: [{ name: "main", image: "b" }] }), true)
      assert.deepStrictEqual([at(image.body, "spec.containers.0.image"), at(image.body, "spec.containers.0.env.0.name")], ["b", "A"])
      const absent = yield* call("PATCH", path, container([]), { type: "application/apply-patch+yaml" })
      assert.strictEqual(absent.status, 422)
    })
  )
})
