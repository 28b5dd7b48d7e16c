import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, Client, configMap, configMaps, eventually, pod, pods } from "./server.ts"

layer(Client.layer, { excludeTestServices: true })("built-in objects", (it) => {
  it.effect("a request without the token is refused, and the token may be part of the path", () =>
    Effect.gen(function* () {
      const { cluster, get } = yield* Client
      const refused = yield* get("/api/v1/namespaces", { token: "wrong" })
      const byPath = yield* get(`/token/${cluster.token}/api/v1/namespaces/default`, { token: "wrong" })
      const wrongPath = yield* get("/token/wrong/api/v1/namespaces/default", { token: "wrong" })
      assert.deepStrictEqual([refused.status, byPath.status, wrongPath.status], [401, 200, 401])
      assert.strictEqual(at(refused.body, "reason"), "Unauthorized")
      assert.include(cluster.kubeconfig, `server: ${cluster.address}/token/${cluster.token}`)
    })
  )

  it.effect("an object is created once, read, replaced and deleted", () =>
    Effect.gen(function* () {
      const { get, post, put, remove } = yield* Client
      const created = yield* post(configMaps, configMap("crud", { a: "1" }))
      const again = yield* post(configMaps, configMap("crud", { a: "2" }))
      assert.deepStrictEqual([created.status, again.status, at(again.body, "reason")], [201, 409, "AlreadyExists"])
      assert.strictEqual(at(again.body, "message"), 'configmaps "crud" already exists')
      const replaced = yield* put(`${configMaps}/crud`, { ...created.body, data: { b: "2" } })
      assert.deepStrictEqual(at(replaced.body, "data"), { b: "2" })
      assert.strictEqual(at(replaced.body, "metadata.uid"), at(created.body, "metadata.uid"))
      assert.isAbove(Number(at(replaced.body, "metadata.resourceVersion")), Number(at(created.body, "metadata.resourceVersion")))
      const stale = yield* put(`${configMaps}/crud`, { ...created.body, data: { c: "3" } })
      assert.deepStrictEqual([stale.status, at(stale.body, "reason")], [409, "Conflict"])
      const gone = yield* remove(`${configMaps}/crud`)
      assert.deepStrictEqual([gone.status, at(gone.body, "status"), at(gone.body, "details.uid")], [200, "Success", at(created.body, "metadata.uid") ?? null])
      const missing = yield* get(`${configMaps}/crud`)
      assert.deepStrictEqual([missing.status, at(missing.body, "message")], [404, 'configmaps "crud" not found'])
    })
  )

  it.effect("a write that changes nothing keeps its version", () =>
    Effect.gen(function* () {
      const { merge, post } = yield* Client
      const created = yield* post(configMaps, configMap("same", { a: "1" }))
      const same = yield* merge(`${configMaps}/same`, { data: { a: "1" } })
      assert.deepStrictEqual(same.body, created.body)
    })
  )

  it.effect("a generated name begins with its prefix, and a missing namespace is an error", () =>
    Effect.gen(function* () {
      const { post } = yield* Client
      const created = yield* post(configMaps, { metadata: { generateName: "gen-" } })
      assert.match(String(at(created.body, "metadata.name")), /^gen-[a-z0-9]{5}$/)
      const nowhere = yield* post("/api/v1/namespaces/nowhere/configmaps", { metadata: { name: "a" } })
      assert.deepStrictEqual([nowhere.status, at(nowhere.body, "message")], [404, 'namespaces "nowhere" not found'])
    })
  )

  it.effect("a dry run returns the result and stores nothing", () =>
    Effect.gen(function* () {
      const { get, post } = yield* Client
      const tried = yield* post(`${configMaps}?dryRun=All`, configMap("dry", {}))
      assert.strictEqual(tried.status, 201)
      assert.strictEqual((yield* get(`${configMaps}/dry`)).status, 404)
    })
  )

  it.effect("selectors select by labels, sets of values and fields", () =>
    Effect.gen(function* () {
      const { get, post } = yield* Client
      yield* post("/api/v1/namespaces", { metadata: { name: "select" } })
      const path = "/api/v1/namespaces/select/pods"
      yield* post(path, pod("a", { labels: { app: "x", tier: "1" } }, { nodeName: "n1" }))
      yield* post(path, pod("b", { labels: { app: "y" } }))
      yield* post(path, pod("c", { labels: { app: "z", tier: "2" } }))
      const names = (query: string) =>
        Effect.map(get(`${path}?${query}`), ({ body }) => {
          const items = at(body, "items")
          return Array.isArray(items) ? items.map((item) => at(item, "metadata.name")) : body
        })
      const select = (selector: string) => names(`labelSelector=${encodeURIComponent(selector)}`)
      assert.deepStrictEqual(yield* select("app=x"), ["a"])
      assert.deepStrictEqual(yield* select("app!=x"), ["b", "c"])
      assert.deepStrictEqual(yield* select("app in (x, z),tier"), ["a", "c"])
      assert.deepStrictEqual(yield* select("tier notin (1)"), ["b", "c"])
      assert.deepStrictEqual(yield* select("!tier"), ["b"])
      assert.deepStrictEqual(yield* names("fieldSelector=spec.nodeName%3Dn1"), ["a"])
      assert.deepStrictEqual(yield* names("fieldSelector=metadata.name%3Dc,status.phase%3DPending"), ["c"])
      assert.strictEqual((yield* get(`${path}?fieldSelector=spec.volumes%3Dx`)).status, 400)
    })
  )

  it.effect("events are selected by their fields in both of their groups, under the names of that group", () =>
    Effect.gen(function* () {
      const { get, post } = yield* Client
      const regarding = (kind: string) => ({ kind, name: "a", namespace: "default" })
      for (const kind of ["Pod", "ModelDeployment"]) {
        const event = { metadata: { name: `about-${kind.toLowerCase()}` }, regarding: regarding(kind), eventTime: "2026-01-01T00:00:00.000000Z" }
        const more = { reason: "Scaled", type: "Normal", action: "Scale", note: "n", reportingController: "seatrial", reportingInstance: "s" }
        assert.strictEqual((yield* post("/apis/events.k8s.io/v1/namespaces/default/events", { ...event, ...more })).status, 201)
      }
      const names = (path: string) =>
        Effect.map(get(path), ({ body }) => {
          const items = at(body, "items")
          return Array.isArray(items) ? items.map((item) => at(item, "metadata.name")) : body
        })
      const core = "/api/v1/namespaces/default/events?fieldSelector="
      const group = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector="
      assert.deepStrictEqual(yield* names(`${core}involvedObject.kind%3DModelDeployment`), ["about-modeldeployment"])
      assert.deepStrictEqual(yield* names(`${core}reportingComponent%3Dseatrial,involvedObject.kind!%3DPod`), ["about-modeldeployment"])
      assert.deepStrictEqual(yield* names(`${group}regarding.kind%3DModelDeployment`), ["about-modeldeployment"])
      assert.deepStrictEqual(yield* names(`${group}reportingController%3Dseatrial,regarding.kind!%3DPod`), ["about-modeldeployment"])
      const asTable = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" }
      const { body } = yield* get(`${group}regarding.kind%3DModelDeployment`, asTable)
      const rows = at(body, "rows")
      assert.include(JSON.stringify(Array.isArray(rows) ? at(rows[0], "cells") : rows), '"Normal","Scaled","modeldeployment/a","n"')
    })
  )

  it.effect("pages together are the complete list", () =>
    Effect.gen(function* () {
      const { get, post } = yield* Client
      yield* post("/api/v1/namespaces", { metadata: { name: "paging" } })
      const path = "/api/v1/namespaces/paging/configmaps"
      for (const name of ["a", "b", "c", "d", "e"]) yield* post(path, configMap(name, {}))
      const seen: Array<unknown> = []
      let token = ""
      do {
        const { body } = yield* get(`${path}?limit=2${token === "" ? "" : `&continue=${token}`}`)
        const items = at(body, "items")
        seen.push(Array.isArray(items) ? items.map((item) => at(item, "metadata.name")) : items)
        token = String(at(body, "metadata.continue") ?? "")
      } while (token !== "")
      assert.deepStrictEqual(seen, [["a", "b"], ["c", "d"], ["e"]])
    })
  )

  it.effect("a pod on a node stays until its agent reports its end", () =>
    Effect.gen(function* () {
      const { get, post, remove } = yield* Client
      yield* post(pods, pod("graceful", {}, { terminationGracePeriodSeconds: 7 }))
      const bound = yield* post(`${pods}/graceful/binding`, { target: { kind: "Node", name: "n" } })
      const twice = yield* post(`${pods}/graceful/binding`, { target: { kind: "Node", name: "m" } })
      assert.deepStrictEqual([bound.status, twice.status], [201, 409])
      yield* remove(`${pods}/graceful`)
      const leaving = yield* get(`${pods}/graceful`)
      assert.deepStrictEqual([at(leaving.body, "spec.nodeName"), at(leaving.body, "metadata.deletionGracePeriodSeconds")], ["n", 7])
      yield* remove(`${pods}/graceful`, { gracePeriodSeconds: 0 })
      assert.strictEqual((yield* get(`${pods}/graceful`)).status, 404)
    })
  )

  it.effect("only some fields of a pod's spec can change, and its status changes through the subresource", () =>
    Effect.gen(function* () {
      const { merge, post } = yield* Client
      yield* post(pods, pod("fixed"))
      const command = yield* merge(`${pods}/fixed`, { spec: { containers: [{ name: "main", image: "engine", command: ["other"] }] } })
      assert.deepStrictEqual([command.status, at(command.body, "reason")], [422, "Invalid"])
      const ignored = yield* merge(`${pods}/fixed`, { status: { phase: "Running" } })
      assert.strictEqual(at(ignored.body, "status.phase"), "Pending")
      const updated = yield* merge(`${pods}/fixed/status`, { status: { phase: "Running" }, metadata: { labels: { no: "no" } } })
      assert.deepStrictEqual(
        [at(updated.body, "status.phase"), at(updated.body, "metadata.labels"), at(updated.body, "metadata.generation")],
        ["Running", undefined, 1]
      )
    })
  )

  it.effect("a strategic merge patch merges lists by their keys, a JSON patch edits single fields", () =>
    Effect.gen(function* () {
      const { call, post } = yield* Client
      yield* post("/api/v1/nodes", {
        metadata: { name: "node" },
        status: {
          conditions: [
            { type: "Ready", status: "False" },
            { type: "DiskPressure", status: "False" }
          ]
        }
      })
      const merged = yield* call(
        "PATCH",
        "/api/v1/nodes/node/status",
        { status: { conditions: [{ type: "Ready", status: "True" }] } },
        { type: "application/strategic-merge-patch+json" }
      )
      assert.deepStrictEqual(at(merged.body, "status.conditions"), [
        { type: "Ready", status: "True" },
        { type: "DiskPressure", status: "False" }
      ])
      const operations = [
        { op: "test", path: "/metadata/name", value: "node" },
        { op: "add", path: "/metadata/labels", value: { "a/b": "1" } },
        { op: "replace", path: "/metadata/labels/a~1b", value: "2" }
      ]
      const edited = yield* call("PATCH", "/api/v1/nodes/node", operations, { type: "application/json-patch+json" })
      assert.deepStrictEqual(at(edited.body, "metadata.labels"), { "a/b": "2" })
      const refused = yield* call("PATCH", "/api/v1/nodes/node", [{ op: "test", path: "/metadata/name", value: "x" }], { type: "application/json-patch+json" })
      assert.strictEqual(refused.status, 422)
    })
  )

  it.effect("a finalizer keeps an object until it is removed", () =>
    Effect.gen(function* () {
      const { get, merge, post, remove } = yield* Client
      yield* post(configMaps, configMap("held", {}, { finalizers: ["example.dev/hold"] }))
      const held = yield* remove(`${configMaps}/held`)
      assert.isString(at(held.body, "metadata.deletionTimestamp"))
      const more = yield* merge(`${configMaps}/held`, { metadata: { finalizers: ["example.dev/hold", "example.dev/more"] } })
      assert.strictEqual(more.status, 422)
      yield* merge(`${configMaps}/held`, { metadata: { finalizers: null } })
      assert.strictEqual((yield* get(`${configMaps}/held`)).status, 404)
    })
  )

  it.effect("a delete with another uid deletes nothing", () =>
    Effect.gen(function* () {
      const { get, post, remove } = yield* Client
      yield* post(configMaps, configMap("mine", {}))
      assert.strictEqual((yield* remove(`${configMaps}/mine`, { preconditions: { uid: "other" } })).status, 409)
      assert.strictEqual((yield* get(`${configMaps}/mine`)).status, 200)
    })
  )

  it.effect("dependents are deleted after their owner, also in a chain, and kept if it orphans them", () =>
    Effect.gen(function* () {
      const { get, post, remove } = yield* Client
      const owned = (owner: typeof first) => ({
        ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: at(owner.body, "metadata.name"), uid: at(owner.body, "metadata.uid") }]
      })
      const first = yield* post(configMaps, configMap("owner", {}))
      const second = yield* post(configMaps, configMap("child", {}, owned(first)))
      yield* post(configMaps, configMap("grandchild", {}, owned(second)))
      yield* remove(`${configMaps}/owner`)
      yield* eventually(get(`${configMaps}/grandchild`), ({ status }) => status === 404)
      const keeper = yield* post(configMaps, configMap("keeper", {}))
      yield* post(configMaps, configMap("kept", {}, owned(keeper)))
      yield* remove(`${configMaps}/keeper`, { propagationPolicy: "Orphan" })
      yield* eventually(get(`${configMaps}/keeper`), ({ status }) => status === 404)
      const remainingMap = yield* get(`${configMaps}/kept`)
      assert.deepStrictEqual([remainingMap.status, at(remainingMap.body, "metadata.ownerReferences")], [200, undefined])
    })
  )

  it.effect("an owner that is deleted in the foreground is removed last", () =>
    Effect.gen(function* () {
      const { get, merge, post, remove } = yield* Client
      const owner = yield* post(configMaps, configMap("front", {}))
      const reference = { apiVersion: "v1", kind: "ConfigMap", name: "front", uid: at(owner.body, "metadata.uid"), blockOwnerDeletion: true }
      yield* post(configMaps, configMap("behind", {}, { ownerReferences: [reference], finalizers: ["example.dev/hold"] }))
      yield* remove(`${configMaps}/front`, { propagationPolicy: "Foreground" })
      yield* eventually(get(`${configMaps}/behind`), ({ body }) => at(body, "metadata.deletionTimestamp") !== undefined)
      assert.strictEqual((yield* get(`${configMaps}/front`)).status, 200)
      yield* merge(`${configMaps}/behind`, { metadata: { finalizers: null } })
      yield* eventually(get(`${configMaps}/front`), ({ status }) => status === 404)
    })
  )

  it.effect("a namespace is deleted with its content", () =>
    Effect.gen(function* () {
      const { get, post, remove } = yield* Client
      yield* post("/api/v1/namespaces", { metadata: { name: "going" } })
      yield* post("/api/v1/namespaces/going/configmaps", configMap("inside", {}))
      yield* remove("/api/v1/namespaces/going")
      yield* eventually(get("/api/v1/namespaces/going"), ({ status }) => status === 404)
      assert.strictEqual((yield* get("/api/v1/namespaces/going/configmaps/inside")).status, 404)
      assert.strictEqual((yield* remove("/api/v1/namespaces/default")).status, 403)
    })
  )

  it.effect("a list as a table has the columns that kubectl prints", () =>
    Effect.gen(function* () {
      const { get, merge, post } = yield* Client
      yield* post(pods, pod("printed"))
      yield* merge(`${pods}/printed/status`, { status: { phase: "Running", containerStatuses: [{ name: "main", ready: true, restartCount: 2 }] } })
      const { body } = yield* get(`${pods}?fieldSelector=metadata.name%3Dprinted`, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" })
      assert.strictEqual(at(body, "kind"), "Table")
      const columns = at(body, "columnDefinitions")
      assert.deepStrictEqual(Array.isArray(columns) ? columns.map((one) => at(one, "name")) : columns, [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
        "IP",
        "Node",
        "Containers"
      ])
      const cells = at(body, "rows.0.cells")
      assert.deepStrictEqual(Array.isArray(cells) ? cells.slice(0, 4) : cells, ["printed", "1/1", "Running", "2"])
      assert.strictEqual(at(body, "rows.0.object.kind"), "PartialObjectMetadata")
    })
  )
})
