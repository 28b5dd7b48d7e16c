import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each, eventually } from "./KubeServer.ts"
import { type Behaviours, openStage } from "./Stage.ts"
import { widgets as definition, installWidgets, widget } from "./widgets.ts"

const open = Effect.gen(function* () {
  yield* installWidgets
  const stage = yield* openStage
  return { ...stage, widgets: stage.group("contract.dev/v1", "widgets") }
})

type Wrong = readonly [what: string, spec: object, field: string, reason: string, message: string]

const wrong: ReadonlyArray<Wrong> = [
  ["a required field", {}, "spec.model", "FieldValueRequired", "Required value"],
  [
    "a type",
    { model: "abc", size: "three" },
    "spec.size",
    "FieldValueTypeInvalid",
    'Invalid value: "string": spec.size in body must be of type integer: "string"'
  ],
  [
    "a flag's type",
    { model: "abc", on: "yes" },
    "spec.on",
    "FieldValueTypeInvalid",
    'Invalid value: "string": spec.on in body must be of type boolean: "string"'
  ],
  ["an enumeration", { model: "abc", mode: "medium" }, "spec.mode", "FieldValueNotSupported", 'Unsupported value: "medium": supported values: "slow", "fast"'],
  ["a pattern", { model: "ABC" }, "spec.model", "FieldValueInvalid", "Invalid value: \"ABC\": spec.model in body should match '^[a-z-]+$'"],
  ["a least length", { model: "a" }, "spec.model", "FieldValueInvalid", 'Invalid value: "a": spec.model in body should be at least 2 chars long'],
  ["a greatest length", { model: "abcdefghijkl" }, "spec.model", "FieldValueTooLong", "Too long: may not be more than 10 bytes"],
  ["a least value", { model: "abc", size: 0 }, "spec.size", "FieldValueInvalid", "Invalid value: 0: spec.size in body should be greater than or equal to 1"],
  ["a greatest value", { model: "abc", size: 10 }, "spec.size", "FieldValueInvalid", "Invalid value: 10: spec.size in body should be less than or equal to 9"],
  ["an exclusive bound", { model: "abc", share: 0 }, "spec.share", "FieldValueInvalid", "Invalid value: 0: spec.share in body should be greater than 0"],
  ["a number of items", { model: "abc", tags: ["a", "b", "c", "d"] }, "spec.tags", "FieldValueTooMany", "Too many: 4: must have at most 3 items"],
  [
    "a number of properties",
    { model: "abc", labels: { a: "1", b: "2", c: "3" } },
    "spec.labels",
    "FieldValueTooMany",
    "Too many: 3: must have at most 2 items"
  ],
  [
    "a map's values",
    { model: "abc", labels: { a: 1 } },
    "spec.labels.a",
    "FieldValueTypeInvalid",
    'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'
  ],
  ["a list's keys", { model: "abc", parts: [{ name: "a" }, { name: "a" }] }, "spec.parts[1]", "FieldValueDuplicate", 'Duplicate value: {"name":"a"}'],
  ["a set's members", { model: "abc", tags: ["a", "a"] }, "spec.tags[1]", "FieldValueDuplicate", 'Duplicate value: "a"'],
  [
    "a date",
    { model: "abc", when: "today" },
    "spec.when",
    "FieldValueTypeInvalid",
    'Invalid value: "today": spec.when in body must be of type date-time: "today"'
  ],
  [
    "what is inside a list",
    { model: "abc", parts: [{ name: "a", n: "1" }] },
    "spec.parts[0].n",
    "FieldValueTypeInvalid",
    'Invalid value: "string": spec.parts[0].n in body must be of type integer: "string"'
  ]
]

const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

/** Custom resources: what their definition says is held, filled in and shown. */
export const customResources: Behaviours = {
  ...Object.fromEntries(
    wrong.map(([what, spec, field, reason, message]) => [
      `${what} of the schema is held, in these words`,
      Effect.gen(function* () {
        const { post, widgets } = yield* open
        const { body, status } = yield* post(widgets, widget("wrong", spec))
        assert.deepStrictEqual([status, at(body, "reason"), at(body, "details.causes")], [422, "Invalid", [{ reason, message, field }]])
        assert.strictEqual(at(body, "message"), `Widget.contract.dev "wrong" is invalid: ${field}: ${message}`)
        assert.deepStrictEqual([at(body, "details.name"), at(body, "details.group"), at(body, "details.kind")], ["wrong", "contract.dev", "Widget"])
      })
    ])
  ),

  "defaults are set at every level, and unknown fields are dropped": Effect.gen(function* () {
    const { post, widgets } = yield* open
    const created = yield* post(widgets, widget("filled", { model: "abc", odd: 1, free: { any: { thing: 1 } }, amount: "10%", empty: null }))
    assert.deepStrictEqual(at(created.body, "spec"), { model: "abc", size: 3, nested: { depth: 1 }, free: { any: { thing: 1 } }, amount: "10%", empty: null })
    assert.strictEqual(at(created.body, "metadata.generation"), 1)
  }),

  "a null that the schema does not allow counts as absent and gets the default": Effect.gen(function* () {
    const { post, widgets } = yield* open
    const created = yield* post(widgets, widget("nulls", { model: "abc", size: null, mode: null }))
    assert.deepStrictEqual([created.status, at(created.body, "spec.size"), at(created.body, "spec.mode")], [201, 3, undefined])
  }),

  "an unknown field is refused if the request asks for strict validation": Effect.gen(function* () {
    const { call, widgets } = yield* open
    const strict = yield* call("POST", `${widgets}?fieldValidation=Strict`, widget("strict", { model: "abc", odd: 1, nested: { odd: 2 } }))
    assert.deepStrictEqual([strict.status, at(strict.body, "reason")], [400, "BadRequest"])
    assert.include(String(at(strict.body, "message")), 'strict decoding error: unknown field "spec.nested.odd", unknown field "spec.odd"')
  }),

  "the status changes only by its own path, and the generation counts changes of the specification": Effect.gen(function* () {
    const { patch, post, put, widgets } = yield* open
    const created = yield* post(widgets, { ...widget("intent", { model: "abc" }), status: { phase: "Sneaked" } })
    assert.strictEqual(at(created.body, "status"), undefined)
    const path = `${widgets}/intent`
    const labelled = yield* patch("merge", path, { metadata: { labels: { a: "b" } } })
    assert.strictEqual(at(labelled.body, "metadata.generation"), 1)
    const status = yield* put(`${path}/status`, { ...labelled.body, spec: { model: "other" }, status: { phase: "Up" } })
    assert.deepStrictEqual([at(status.body, "status.phase"), at(status.body, "spec.model"), at(status.body, "metadata.generation")], ["Up", "abc", 1])
    const intent = yield* patch("merge", path, { spec: { size: 5 }, status: { phase: "Down" } })
    assert.deepStrictEqual([at(intent.body, "status.phase"), at(intent.body, "metadata.generation")], ["Up", 2])
    const stale = yield* put(`${path}/status`, { ...labelled.body, status: { phase: "Old" } })
    assert.deepStrictEqual([stale.status, at(stale.body, "reason")], [409, "Conflict"])
    const versionless = yield* put(path, widget("intent", { model: "abc" }))
    assert.deepStrictEqual([versionless.status, at(versionless.body, "details.causes.0.field")], [422, "metadata.resourceVersion"])
  }),

  "a strategic merge patch is refused": Effect.gen(function* () {
    const { patch, post, widgets } = yield* open
    yield* post(widgets, widget("media", { model: "abc" }))
    const refused = yield* patch("strategic", `${widgets}/media`, {})
    assert.deepStrictEqual([refused.status, at(refused.body, "reason")], [415, "UnsupportedMediaType"])
  }),

  "a table has the columns of the definition": Effect.gen(function* () {
    const { get, patch, post, widgets } = yield* open
    yield* post(widgets, widget("columns", { model: "abc" }))
    const conditions = [
      { type: "Other", status: "False" },
      { type: "Ready", status: "True" }
    ]
    yield* patch("merge", `${widgets}/columns/status`, { status: { phase: "Up", conditions } })
    const { body } = yield* get(widgets, { accept: table })
    assert.deepStrictEqual([at(body, "kind"), at(body, "apiVersion")], ["Table", "meta.k8s.io/v1"])
    const columns = at(body, "columnDefinitions")
    assert.deepStrictEqual(each(columns, "name"), ["Name", "Phase", "Ready", "Model", "Age"])
    assert.deepStrictEqual(
      [each(columns, "priority"), each(columns, "type")],
      [
        [0, 0, 0, 1, 0],
        ["string", "string", "string", "string", "date"]
      ]
    )
    const cells = at(body, "rows.0.cells")
    assert.deepStrictEqual(Array.isArray(cells) ? cells.slice(0, 4) : cells, ["columns", "Up", "True", "abc"])
    assert.match(String(at(body, "rows.0.cells.4")), /^[\dms]+$/)
    assert.deepStrictEqual([at(body, "rows.0.object.kind"), at(body, "rows.0.object.metadata.name")], ["PartialObjectMetadata", "columns"])
  }),

  "discovery names the kind, its short names, categories and verbs": Effect.gen(function* () {
    const { get } = yield* open
    const discovery = yield* eventually(get("/apis/contract.dev/v1"), ({ body }) => each(at(body, "resources"), "name").includes("widgets"))
    const resources = at(discovery.body, "resources")
    const [kind, status] = ["widgets", "widgets/status"].map((name) => at(resources, String(each(resources, "name").indexOf(name))))
    assert.deepStrictEqual(
      [at(kind, "kind"), at(kind, "singularName"), at(kind, "namespaced"), at(kind, "shortNames"), at(kind, "categories")],
      ["Widget", "widget", true, ["wdg"], ["contract"]]
    )
    const verbs = at(kind, "verbs")
    assert.sameMembers(Array.isArray(verbs) ? [...verbs] : [], ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
    assert.deepStrictEqual(at(status, "verbs"), ["get", "patch", "update"])
    const groups = yield* get("/apis")
    assert.include(each(at(groups.body, "groups"), "name"), "contract.dev")
  }),

  "the schema is published": Effect.gen(function* () {
    const { get } = yield* open
    const index = yield* eventually(get("/openapi/v3"), ({ body }) => at(body, "paths.apis/contract\\.dev/v1") !== undefined)
    assert.match(String(at(index.body, "paths.apis/contract\\.dev/v1.serverRelativeURL")), /^\/openapi\/v3\/apis\/contract\.dev\/v1\?hash=/)
    const document = yield* get("/openapi/v3/apis/contract.dev/v1")
    const schema = at(document.body, "components.schemas.dev\\.contract\\.v1\\.Widget")
    assert.deepStrictEqual([at(schema, "properties.spec.properties.size.maximum"), at(schema, "description")], [9, "A widget."])
    assert.deepStrictEqual(at(schema, "x-kubernetes-group-version-kind"), [{ group: "contract.dev", kind: "Widget", version: "v1" }])
  }),

  "an invalid definition is refused": Effect.gen(function* () {
    const { post } = yield* open
    const misnamed = yield* post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { ...definition, metadata: { name: "other.contract.dev" } })
    assert.deepStrictEqual([misnamed.status, at(misnamed.body, "details.causes.0.field")], [422, "metadata.name"])
  }),

  "deleting a definition deletes its objects": Effect.gen(function* () {
    const { get, post, remove } = yield* open
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    const names = { plural: "gadgets", kind: "Gadget" }
    yield* post(definitions, { ...definition, metadata: { name: "gadgets.contract.dev" }, spec: { ...definition.spec, scope: "Cluster", names } })
    const path = "/apis/contract.dev/v1/gadgets"
    yield* eventually(
      post(path, { apiVersion: "contract.dev/v1", kind: "Gadget", metadata: { name: "a" }, spec: { model: "abc" } }),
      ({ status }) => status === 201
    )
    yield* remove(`${definitions}/gadgets.contract.dev`)
    yield* eventually(get(`${definitions}/gadgets.contract.dev`), ({ status }) => status === 404)
    yield* eventually(get(path), ({ status }) => status === 404)
  })
}
