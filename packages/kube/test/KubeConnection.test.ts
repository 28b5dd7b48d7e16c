import { readFileSync } from "node:fs"
import { createServer } from "node:https"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option } from "effect"
import { KubeClient, KubeConnection, Pod } from "../src/index.ts"
import { ApiServer, json, layerConnection, pod } from "./ApiServer.ts"

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))

const getPod = Effect.gen(function* () {
  const client = yield* KubeClient
  return yield* client.get(Pod, "a", "default")
})

const clientFor = (connection: ReturnType<typeof layerConnection>) => KubeClient.layer.pipe(Layer.provide(connection))

describe("KubeConnection", () => {
  it.live("a context chosen by name brings its own user", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start(json(200, pod("a", "1")), json(200, pod("a", "1")))
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server))))
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server, { token: "secret-token" }, {}, "other"))))
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers.authorization),
        ["Bearer secret-token", undefined]
      )
    })
  )

  it.live("a credential plug-in is asked for the token", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start(json(200, pod("a", "1")))
      const credential = JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token: "from-plug-in" } })
      const user = { exec: { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: ["-p", JSON.stringify(credential)] } }
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server, user))))
      assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer from-plug-in")
    })
  )

  it.live("over TLS the server must be the cluster's own, and the client shows its certificate", () =>
    Effect.gen(function* () {
      const options = {
        key: readFileSync(fixture("server.key")),
        cert: readFileSync(fixture("server.crt")),
        ca: readFileSync(fixture("ca.crt")),
        requestCert: true,
        rejectUnauthorized: true
      }
      const server = yield* ApiServer.listening(new ApiServer((listener) => createServer(options, listener)), "https", [json(200, pod("a", "1"))])
      const user = { "client-certificate": fixture("client.crt"), "client-key": fixture("client.key") }
      const stranger = yield* Effect.flip(getPod.pipe(Effect.provide(clientFor(layerConnection(server, user)))))
      assert.strictEqual(stranger._tag === "KubeError" ? stranger.reason : stranger._tag, "Retryable")
      const unknown = yield* Effect.flip(getPod.pipe(Effect.provide(clientFor(layerConnection(server, {}, { "certificate-authority": fixture("ca.crt") })))))
      assert.strictEqual(unknown._tag === "KubeError" ? unknown.reason : unknown._tag, "Retryable")
      assert.strictEqual(server.requests.length, 0)
      const found = yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server, user, { "certificate-authority": fixture("ca.crt") }))))
      assert.isTrue(Option.isSome(found))
    })
  )

  it.live("a server below a path keeps that path", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start(json(200, pod("a", "1")))
      server.address += "/k8s/clusters/c1"
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server))))
      assert.strictEqual(server.requests[0]?.path, "/k8s/clusters/c1/api/v1/namespaces/default/pods/a")
    })
  )

  const configured = (settings: Record<string, string>) =>
    KubeConnection.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))

  it.effect("a kubeconfig that is not there, or has no such context, is told before anything starts", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(Layer.build(configured({ KUBECONFIG: "/nowhere/config" })))
      assert.strictEqual(missing._tag, "KubeConnectionError")
      assert.include(missing.message, "/nowhere/config")
      const server = yield* ApiServer.start()
      const noContext = yield* Effect.flip(Layer.build(layerConnection(server, {}, {}, "absent")))
      assert.include(noContext.message, "absent")
    })
  )

  it.effect("gives the namespace of the context", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start()
      const connection = yield* KubeConnection.pipe(Effect.provide(layerConnection(server)))
      assert.strictEqual(connection.namespace, "apps")
      assert.strictEqual(connection.server.origin, server.address)
    })
  )
})
