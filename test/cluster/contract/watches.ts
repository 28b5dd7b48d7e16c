import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each } from "./KubeServer.ts"
import { type Behaviours, configMap, openStage, pod } from "./Stage.ts"
import { installWidgets } from "./widgets.ts"

const version = (value: Parameters<typeof at>[0]) => String(at(value, "metadata.resourceVersion"))
const summariesOf = (events: ReadonlyArray<Parameters<typeof at>[0]>) => events.map((event) => `${at(event, "type")} ${at(event, "object.metadata.name")}`)

/** Watches: their start, their events, their end. */
export const watches: Behaviours = {
  "from a version on, every change is sent once and in order, a removal with its own version": Effect.gen(function* () {
    const { configMaps, events, get, patch, post, remove } = yield* openStage
    const from = version((yield* get(configMaps)).body)
    const created = yield* post(configMaps, configMap("a", { n: "1" }, { labels: { w: "1" } }))
    yield* patch("merge", `${configMaps}/a`, { data: { n: "2" } })
    yield* post(configMaps, configMap("b", {}, { labels: { w: "1" } }))
    yield* remove(`${configMaps}/a`)
    const received = yield* events(`${configMaps}?watch=true&resourceVersion=${from}&labelSelector=w%3D1`, 4)
    assert.deepStrictEqual(summariesOf(received), ["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"])
    const versions = received.map((event) => Number(at(event, "object.metadata.resourceVersion")))
    assert.deepStrictEqual(
      versions,
      [...new Set(versions)].sort((a, b) => a - b)
    )
    assert.strictEqual(at(received[0], "object.metadata.resourceVersion"), version(created.body))
    assert.deepStrictEqual(
      [at(received[3], "object.data"), at(received[0], "object.kind"), at(received[0], "object.apiVersion")],
      [{ n: "2" }, "ConfigMap", "v1"]
    )
  }),

  "without a version it begins with the existing objects": Effect.gen(function* () {
    const { configMaps, events, post } = yield* openStage
    yield* post(configMaps, configMap("a", {}, { labels: { w: "2" } }))
    const query = `${configMaps}?watch=true&labelSelector=w%3D2&timeoutSeconds=60`
    assert.deepStrictEqual(summariesOf(yield* events(query, 1)), ["ADDED a"])
    assert.deepStrictEqual(summariesOf(yield* events(`${query}&resourceVersion=0`, 1)), ["ADDED a"])
  }),

  "an object that begins to match a selector is added, and one that stops matching is deleted": Effect.gen(function* () {
    const { events, get, patch, pods, post } = yield* openStage
    yield* post(pods, pod("a", { labels: { app: "x" } }, { schedulerName: "nobody" }))
    const from = version((yield* get(pods)).body)
    yield* patch("merge", `${pods}/a`, { metadata: { labels: { app: "y" } } })
    yield* patch("merge", `${pods}/a`, { metadata: { labels: { app: "y", more: "1" } } })
    yield* patch("merge", `${pods}/a`, { metadata: { labels: { app: "x" } } })
    yield* patch("merge", `${pods}/a/status`, { status: { phase: "Running" } })
    const label = yield* events(`${pods}?watch=true&resourceVersion=${from}&labelSelector=app%3Dx`, 3)
    assert.deepStrictEqual(summariesOf(label), ["DELETED a", "ADDED a", "MODIFIED a"])
    // What it was before it left, at the version at which it left.
    assert.strictEqual(at(label[0], "object.metadata.labels.app"), "x")
    const field = yield* events(`${pods}?watch=true&resourceVersion=${from}&fieldSelector=status.phase%3DRunning`, 1)
    assert.deepStrictEqual(summariesOf(field), ["ADDED a"])
  }),

  "it ends after the requested seconds, after a bookmark with the last version": Effect.gen(function* () {
    const { configMaps, events, get, post } = yield* openStage
    const from = version((yield* get(configMaps)).body)
    const created = yield* post(configMaps, configMap("a", {}, { labels: { w: "4" } }))
    const received = yield* events(`${configMaps}?watch=true&resourceVersion=${from}&labelSelector=w%3D4&allowWatchBookmarks=true&timeoutSeconds=9`, 100)
    const bookmark = received.findLast((event) => at(event, "type") === "BOOKMARK")
    assert.deepStrictEqual(
      [at(bookmark, "object.kind"), at(bookmark, "object.apiVersion"), at(bookmark, "object.metadata.name")],
      ["ConfigMap", "v1", undefined]
    )
    assert.isAtLeast(Number(version(at(bookmark, "object"))), Number(version(created.body)))
    assert.deepStrictEqual(summariesOf(received.filter((event) => at(event, "type") !== "BOOKMARK")), ["ADDED a"])
    const silent = yield* events(`${configMaps}?watch=true&resourceVersion=${version(created.body)}&labelSelector=w%3D4&timeoutSeconds=1`, 100)
    assert.deepStrictEqual(silent, [])
  }),

  "the existing objects can be requested first, with a bookmark after them": Effect.gen(function* () {
    const { configMaps, events, post } = yield* openStage
    yield* post(configMaps, configMap("a", {}, { labels: { w: "3" } }))
    const query = "watch=true&labelSelector=w%3D3&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    const received = yield* events(`${configMaps}?${query}`, 2)
    assert.deepStrictEqual(summariesOf(received), ["ADDED a", "BOOKMARK undefined"])
    assert.strictEqual(at(received[1], "object.metadata.annotations.k8s\\.io/initial-events-end"), "true")
    const { body, status } = yield* (yield* openStage).get(`${configMaps}?watch=true&sendInitialEvents=true`)
    assert.deepStrictEqual([status, at(body, "reason"), at(body, "details.causes.0.field")], [422, "Invalid", "resourceVersionMatch"])
  }),

  "a version that is too old is an ERROR event with a Status of 410": Effect.gen(function* () {
    const { events, group } = yield* openStage
    yield* installWidgets
    const received = yield* events(`${group("contract.dev/v1", "widgets")}?watch=true&resourceVersion=1&timeoutSeconds=5`, 10)
    assert.deepStrictEqual(
      received.map((event) => [at(event, "type"), at(event, "object.kind"), at(event, "object.code"), at(event, "object.reason")]),
      [["ERROR", "Status", 410, "Expired"]]
    )
    assert.match(String(at(received[0], "object.message")), /^too old resource version: 1 \(\d+\)$/)
  }),

  "one object is watched by its name": Effect.gen(function* () {
    const { configMaps, events, get, patch, post } = yield* openStage
    const from = version((yield* get(configMaps)).body)
    yield* post(configMaps, configMap("a"))
    yield* post(configMaps, configMap("b"))
    yield* patch("merge", `${configMaps}/b`, { data: { n: "1" } })
    const query = `watch=true&resourceVersion=${from}&fieldSelector=metadata.name%3Db`
    assert.deepStrictEqual(summariesOf(yield* events(`${configMaps}?${query}`, 2)), ["ADDED b", "MODIFIED b"])
  }),

  "a watch of tables sends rows": Effect.gen(function* () {
    const { events, get, pods, post } = yield* openStage
    const from = version((yield* get(pods)).body)
    yield* post(pods, pod("a"))
    const received = yield* events(`${pods}?watch=true&resourceVersion=${from}`, 1, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" })
    assert.deepStrictEqual([at(received[0], "object.kind"), each(at(received[0], "object.rows"), "object.metadata.name")], ["Table", ["a"]])
  })
}
