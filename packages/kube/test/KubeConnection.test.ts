import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option } from "effect"
import { KubeClient, KubeConnection, Pod } from "../src/index.ts"
import { ApiServer, json, layerConnection, pod, status } from "./ApiServer.ts"

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))

const getPod = Effect.gen(function* () {
  const client = yield* KubeClient
  return yield* client.get(Pod, "a", "default")
})

const clientFor = (connection: ReturnType<typeof layerConnection>) => KubeClient.layer.pipe(Layer.provide(connection))

describe("KubeConnection", () => {
  it.live("a context selected by name uses its own user", () =>
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

  it.live("a credential plug-in provides the token", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start(json(200, pod("a", "1")))
      const credential = JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token: "from-plug-in" } })
      const user = { exec: { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: ["-p", JSON.stringify(credential)] } }
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server, user))))
      assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer from-plug-in")
    })
  )

  it.live("over TLS, the server must match the cluster's authority and the client presents its certificate", () =>
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
      const received = yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server, user, { "certificate-authority": fixture("ca.crt") }))))
      assert.isTrue(Option.isSome(received))
    })
  )

  const inPod = (server: ApiServer, folder: string) => {
    const { hostname, port } = new URL(server.address)
    const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
    return KubeConnection.layer({ serviceAccount: folder }).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(environment))))
  }
  const serviceAccount = Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await mkdtemp(join(tmpdir(), "service-account-"))
      await writeFile(join(folder, "token"), "first\n")
      await writeFile(join(folder, "namespace"), "models\n")
      await writeFile(join(folder, "ca.crt"), readFileSync(fixture("ca.crt")))
      return folder
    }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  )

  it.live("in a pod, the ServiceAccount gives access over TLS with the current token and no further files", () =>
    Effect.gen(function* () {
      const options = { key: readFileSync(fixture("server.key")), cert: readFileSync(fixture("server.crt")) }
      const answers = [json(200, pod("a", "1")), status(401, "Unauthorized", "expired"), json(200, pod("a", "1"))]
      const server = yield* ApiServer.listening(new ApiServer((listener) => createServer(options, listener)), "https", answers)
      const folder = yield* serviceAccount
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* KubeConnection).namespace, "models")
        yield* getPod
        yield* Effect.promise(() => writeFile(join(folder, "token"), "rotated"))
        yield* getPod
      }).pipe(Effect.provide(KubeClient.layer.pipe(Layer.provideMerge(inPod(server, folder)))))
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers.authorization),
        ["Bearer first", "Bearer first", "Bearer rotated"]
      )
    })
  )

  it.effect("a ServiceAccount without an API server address, or with an unknown context, is reported at the start", () =>
    Effect.gen(function* () {
      const folder = yield* serviceAccount
      const withoutAddress = KubeConnection.layer({ serviceAccount: folder }).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({}))))
      assert.include((yield* Effect.flip(Layer.build(withoutAddress))).message, "KUBERNETES_SERVICE_HOST")
      const context = yield* Effect.flip(Layer.build(KubeConnection.layer({ serviceAccount: folder, context: "absent" })))
      assert.include(context.message, "absent")
    })
  )

  it.live("a program that reads no kubeconfig does not load the kubeconfig library, which takes more memory than the rest", () =>
    Effect.gen(function* () {
      const program = `
        import { registerHooks } from "node:module"
        registerHooks({ resolve: (name, context, next) => { if (name.startsWith("@kubernetes/")) console.log(name); return next(name, context) } })
        const load = (file) => import(new URL(file, ${JSON.stringify(new URL("../src/", import.meta.url).href)}).href)
        await load("index.ts")
        console.log("all but that")
        await load("readKubeconfig.ts")`
      const { stdout } = yield* Effect.promise(() => promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]))
      assert.deepStrictEqual(stdout.trim().split("\n"), ["all but that", "@kubernetes/client-node"])
    })
  )

  it.live("a server URL with a path keeps that path", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start(json(200, pod("a", "1")))
      server.address += "/k8s/clusters/c1"
      yield* getPod.pipe(Effect.provide(clientFor(layerConnection(server))))
      assert.strictEqual(server.requests[0]?.path, "/k8s/clusters/c1/api/v1/namespaces/default/pods/a")
    })
  )

  const configured = (settings: Record<string, string>) =>
    KubeConnection.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))

  it.effect("a missing kubeconfig or context is reported at the start", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(Layer.build(configured({ KUBECONFIG: "/nowhere/config" })))
      assert.strictEqual(missing._tag, "KubeConnectionError")
      assert.include(missing.message, "/nowhere/config")
      const server = yield* ApiServer.start()
      const noContext = yield* Effect.flip(Layer.build(layerConnection(server, {}, {}, "absent")))
      assert.include(noContext.message, "absent")
    })
  )

  it.effect("returns the namespace of the context", () =>
    Effect.gen(function* () {
      const server = yield* ApiServer.start()
      const connection = yield* KubeConnection.pipe(Effect.provide(layerConnection(server)))
      assert.strictEqual(connection.namespace, "apps")
      assert.strictEqual(connection.server.origin, server.address)
    })
  )
})
