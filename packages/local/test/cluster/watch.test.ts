import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { LocalCluster } from "../../src/cluster/LocalCluster.ts"
import { at, Client, clientOf, configMap, configMaps, crds, layerDatabase, pod, pods, widget, widgetPath, widgets } from "./server.ts"

const summaryOf = (events: ReadonlyArray<Parameters<typeof at>[0]>) => events.map((event) => `${at(event, "type")} ${at(event, "object.metadata.name")}`)

layer(Client.layer, { excludeTestServices: true })("watches", (it) => {
  it.effect("a watch continues from a version and misses nothing", () =>
    Effect.gen(function* () {
      const { events, get, merge, post, remove } = yield* Client
      const before = yield* get(configMaps)
      const version = at(before.body, "metadata.resourceVersion")
      yield* post(configMaps, configMap("seen", { a: "1" }))
      yield* merge(`${configMaps}/seen`, { data: { a: "2" } })
      yield* post(pods, pod("not-a-map"))
      yield* remove(`${configMaps}/seen`)
      const received = yield* events(`${configMaps}?watch=true&resourceVersion=${version}`, 3)
      assert.deepStrictEqual(summaryOf(received), ["ADDED seen", "MODIFIED seen", "DELETED seen"])
      const middle = at(received[1], "object.metadata.resourceVersion")
      const rest = yield* events(`${configMaps}?watch=true&resourceVersion=${middle}`, 1)
      assert.deepStrictEqual(rest, received.slice(2))
    })
  )

  it.effect("a watch reports changes while it is open", () =>
    Effect.gen(function* () {
      const { events, post } = yield* Client
      const path = `${configMaps}?watch=true&fieldSelector=metadata.name%3Dlive`
      const [received] = yield* Effect.all([events(path, 1), post(configMaps, configMap("live", {}))], { concurrency: 2 })
      assert.deepStrictEqual(summaryOf(received), ["ADDED live"])
    })
  )

  it.effect("an object that no longer matches the selector is reported as deleted", () =>
    Effect.gen(function* () {
      const { events, get, merge, post } = yield* Client
      yield* post(configMaps, configMap("moving", {}, { labels: { on: "yes" } }))
      const { body } = yield* get(configMaps)
      yield* merge(`${configMaps}/moving`, { metadata: { labels: { on: "no" } } })
      yield* merge(`${configMaps}/moving`, { metadata: { labels: { on: "yes" } } })
      const received = yield* events(`${configMaps}?watch=true&labelSelector=on%3Dyes&resourceVersion=${at(body, "metadata.resourceVersion")}`, 2)
      assert.deepStrictEqual(summaryOf(received), ["DELETED moving", "ADDED moving"])
    })
  )

  it.effect("a watch ends with a bookmark from which the next watch continues", () =>
    Effect.gen(function* () {
      const { events, get, post } = yield* Client
      const { body } = yield* get(`${configMaps}?limit=1`)
      const from = at(body, "metadata.resourceVersion")
      yield* post(pods, pod("elsewhere"))
      const received = yield* events(`${configMaps}?watch=true&resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=1`, 9)
      assert.deepStrictEqual(
        received.map((event) => at(event, "type")),
        ["BOOKMARK"]
      )
      assert.isAbove(Number(at(received[0], "object.metadata.resourceVersion")), Number(from))
    })
  )

  it.effect("a streamed list ends with its marked bookmark", () =>
    Effect.gen(function* () {
      const { events, post } = yield* Client
      yield* post("/api/v1/namespaces", { metadata: { name: "streamed" } })
      yield* post("/api/v1/namespaces/streamed/configmaps", configMap("one", {}))
      const path = "/api/v1/namespaces/streamed/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
      const received = yield* events(path, 2)
      assert.deepStrictEqual(
        received.map((event) => at(event, "type")),
        ["ADDED", "BOOKMARK"]
      )
      const annotations = at(received[1], "object.metadata.annotations")
      assert.deepStrictEqual(annotations, { "k8s.io/initial-events-end": "true" })
    })
  )

  it.effect("a watch as a table sends rows", () =>
    Effect.gen(function* () {
      const { events, post } = yield* Client
      yield* post(configMaps, configMap("row", { a: "1", b: "2" }))
      const [received] = yield* events(`${configMaps}?watch=true&fieldSelector=metadata.name%3Drow`, 1, {
        accept: "application/json;as=Table;v=v1;g=meta.k8s.io"
      })
      assert.deepStrictEqual([at(received, "object.kind"), at(received, "object.rows.0.cells.0"), at(received, "object.rows.0.cells.1")], ["Table", "row", 2])
    })
  )
})

describe("a restart", () => {
  it.live("keeps objects, definitions and the version counter, and earlier versions are Gone", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(layerDatabase)
      const run = <A, E>(use: (client: ReturnType<typeof clientOf>) => Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          return yield* use(clientOf(yield* LocalCluster.make({ port: 0, token: "one" })))
        }).pipe(Effect.scoped, Effect.provideContext(context))
      const [map, custom, page, version] = yield* run(({ get, post, remove }) =>
        Effect.gen(function* () {
          yield* post(crds, widgets)
          const created = yield* post(widgetPath, widget("kept", { model: "abc" }))
          const map = yield* post(configMaps, configMap("kept", { a: "1" }))
          yield* post(configMaps, configMap("gone", {}))
          const page = at((yield* get(`${configMaps}?limit=1`)).body, "metadata.continue")
          yield* remove(`${configMaps}/gone`)
          return [map, created, page, at((yield* get(configMaps)).body, "metadata.resourceVersion")] as const
        })
      )
      yield* run(({ events, get, post }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual((yield* get(`${configMaps}/kept`)).body, map.body)
          assert.deepStrictEqual((yield* get(`${widgetPath}/kept`)).body, custom.body)
          assert.strictEqual(at((yield* get(configMaps)).body, "metadata.resourceVersion"), version)
          const [error] = yield* events(`${configMaps}?watch=true&resourceVersion=${at(map.body, "metadata.resourceVersion")}`, 1)
          assert.deepStrictEqual([at(error, "type"), at(error, "object.code"), at(error, "object.reason")], ["ERROR", 410, "Expired"])
          assert.strictEqual((yield* get(`${configMaps}?limit=1&continue=${page}`)).status, 410)
          const next = yield* post(configMaps, configMap("next", {}))
          assert.isAbove(Number(at(next.body, "metadata.resourceVersion")), Number(version))
          assert.deepStrictEqual(summaryOf(yield* events(`${configMaps}?watch=true&resourceVersion=${version}`, 1)), ["ADDED next"])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("is not needed after the database was unavailable: writes fail with 503 and later succeed", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(layerDatabase)
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { get, post } = clientOf(yield* LocalCluster.make({ port: 0 }))
        yield* sql`ALTER TABLE objects RENAME TO hidden`
        const refused = yield* post(configMaps, configMap("late", {}))
        assert.deepStrictEqual([refused.status, at(refused.body, "reason")], [503, "ServiceUnavailable"])
        yield* sql`ALTER TABLE hidden RENAME TO objects`
        assert.strictEqual((yield* post(configMaps, configMap("late", {}))).status, 201)
        assert.strictEqual((yield* get(`${configMaps}/late`)).status, 200)
      }).pipe(Effect.scoped, Effect.provideContext(context))
    }).pipe(Effect.scoped)
  )
})
