import { createServer } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { at, Client, configMaps, eventually, pod, pods } from "../cluster/server.ts"

/**
 * An agent that serves the log of a node's pods: the first line immediately, the second after `release`. `left`
 * resolves when the reader disconnects.
 */
const agent = Effect.acquireRelease(
  Effect.callback<{
    readonly port: number
    readonly asked: Array<string>
    readonly release: () => void
    readonly left: Promise<void>
    readonly close: () => void
  }>((resume) => {
    const asked: Array<string> = []
    const released = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const server = createServer((request, response) => {
      asked.push(request.url ?? "")
      response.on("close", () => left.resolve())
      response.write("first\n")
      void released.promise.then(() => response.write("second\n"))
    }).listen(0, "127.0.0.1", () => {
      const address = server.address()
      const close = () => {
        server.close()
        server.closeAllConnections()
      }
      resume(Effect.succeed({ port: typeof address === "object" ? (address?.port ?? 0) : 0, asked, release: released.resolve, left: left.promise, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

layer(Client.layer, { excludeTestServices: true })("what clients ask around the objects", (it) => {
  it.effect("discovery names the groups, their versions and their resources", () =>
    Effect.gen(function* () {
      const { get } = yield* Client
      const groups = at((yield* get("/apis")).body, "groups")
      assert.deepStrictEqual(Array.isArray(groups) ? groups.map((one) => at(one, "preferredVersion.groupVersion")) : groups, [
        "batch/v1",
        "coordination.k8s.io/v1",
        "policy/v1",
        "events.k8s.io/v1",
        "apiextensions.k8s.io/v1"
      ])
      const core = at((yield* get("/api/v1")).body, "resources")
      const names = Array.isArray(core) ? core.map((one) => at(one, "name")) : []
      assert.includeMembers(names, ["namespaces", "nodes", "nodes/status", "pods", "pods/binding", "pods/log", "pods/status", "secrets", "events"])
      assert.match(String(at((yield* get("/version")).body, "gitVersion")), /^v1\.37\./)
      const missing = yield* get("/apis/nowhere.dev/v1/things")
      assert.deepStrictEqual([missing.status, at(missing.body, "kind"), at(missing.body, "reason")], [404, "Status", "NotFound"])
    })
  )

  it.effect("health checks need no token", () =>
    Effect.gen(function* () {
      const { cluster } = yield* Client
      const text = yield* Effect.promise(() => fetch(`${cluster.address}/readyz`).then((response) => response.text()))
      assert.strictEqual(text, "ok")
    })
  )

  it.effect("the log of a pod streams from the agent of its node, and a disconnect ends the stream there", () =>
    Effect.gen(function* () {
      const { cluster, get, post } = yield* Client
      const { asked, left, port, release } = yield* agent
      const status = { addresses: [{ type: "InternalIP", address: "127.0.0.1" }], daemonEndpoints: { kubeletEndpoint: { Port: port } } }
      yield* post("/api/v1/nodes", { metadata: { name: "logging" }, status })
      yield* post(pods, pod("talks", {}, { nodeName: "logging" }))
      const response = yield* Effect.promise(() =>
        fetch(`${cluster.address}${pods}/talks/log?follow=true&tailLines=5`, { headers: { authorization: `Bearer ${cluster.token}` } })
      )
      const reader = response.body?.getReader()
      const chunk = Effect.promise(async () => new TextDecoder().decode((await reader?.read())?.value))
      assert.strictEqual(yield* chunk, "first\n")
      release()
      assert.strictEqual(yield* chunk, "second\n")
      assert.deepStrictEqual(asked, ["/containerLogs/default/talks/main?follow=true&tailLines=5"])
      yield* Effect.promise(async () => reader?.cancel())
      assert.isTrue(
        Option.isSome(
          yield* Effect.timeoutOption(
            Effect.promise(() => left),
            "10 seconds"
          )
        )
      )
      yield* post(pods, pod("unplaced"))
      const early = yield* get(`${pods}/unplaced/log`)
      assert.deepStrictEqual([early.status, at(early.body, "message")], [400, "pod unplaced does not have a host assigned"])
    })
  )

  it.effect("only the newest thousand events are kept", () =>
    Effect.gen(function* () {
      const { get, post } = yield* Client
      const event = (name: string) => ({ metadata: { name }, involvedObject: { kind: "Pod", name: "a" }, reason: "Tested", message: "m", type: "Normal" })
      const names = Array.from({ length: 1_005 }, (_, index) => `e${String(index).padStart(4, "0")}`)
      for (const name of names) yield* post("/api/v1/namespaces/default/events", event(name))
      yield* eventually(get("/api/v1/namespaces/default/events/e0004"), ({ status }) => status === 404)
      const { body } = yield* get("/api/v1/events?limit=1")
      assert.deepStrictEqual([at(body, "items.0.metadata.name"), at(body, "metadata.remainingItemCount")], ["e0005", 999])
      const renamed = yield* get("/apis/events.k8s.io/v1/namespaces/default/events/e0005")
      assert.deepStrictEqual([at(renamed.body, "regarding.name"), at(renamed.body, "note"), at(renamed.body, "involvedObject")], ["a", "m", undefined])
    })
  )

  it.effect("protobuf bodies of kubectl create are accepted", () =>
    Effect.gen(function* () {
      const { cluster, get } = yield* Client
      // A ConfigMap with `{"x":"1"}`, as kubectl 1.36 wrote it.
      const body = Buffer.from(
        "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a01611200 1a00220 02a0032003800420012060a01781201311a002200".replaceAll(" ", ""),
        "hex"
      )
      const send = (bytes: Buffer) =>
        Effect.promise(() =>
          fetch(`${cluster.address}${configMaps}`, {
            method: "POST",
            headers: { authorization: `Bearer ${cluster.token}`, "content-type": "application/vnd.kubernetes.protobuf" },
            body: new Uint8Array(bytes)
          })
        )
      assert.strictEqual((yield* send(body)).status, 201)
      assert.deepStrictEqual(at((yield* get(`${configMaps}/a`)).body, "data"), { x: "1" })
      assert.strictEqual((yield* send(Buffer.from("k8s\0garbage"))).status, 415)
    })
  )

  it.effect("a body that is too large or not JSON is refused", () =>
    Effect.gen(function* () {
      const { cluster, post } = yield* Client
      const large = yield* post(configMaps, { metadata: { name: "large" }, data: { a: "x".repeat(4_000_000) } })
      assert.strictEqual(large.status, 413)
      const broken = yield* Effect.promise(() =>
        fetch(`${cluster.address}${configMaps}`, { method: "POST", headers: { authorization: `Bearer ${cluster.token}` }, body: "{" })
      )
      assert.strictEqual(broken.status, 400)
    })
  )
})
