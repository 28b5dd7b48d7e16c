import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { stringify } from "yaml"
import { ApiObjects } from "./ApiObjects.ts"
import { discovery, version } from "./Discovery.ts"
import { layerGarbageCollector } from "./GarbageCollector.ts"
import type { Handler } from "./Http.ts"
import { serve } from "./httpServer.ts"
import { isObject } from "./Json.ts"
import { Kinds } from "./Kinds.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { ObjectStore } from "./ObjectStore.ts"
import { openApiV2, openApiV3 } from "./OpenApi.ts"
import { Writes } from "./Writes.ts"

export interface LocalClusterOptions {
  /** 0: any free port. */
  readonly port: number
  /** The token that clients must present. Default: a random one. */
  readonly token?: string
  /** Wraps the handler of the server. */
  readonly through?: (handler: Handler) => Handler
}

const open = new Set(["healthz", "livez", "readyz", "version"])

const sameSecret = (a: string, b: string): boolean => {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest())
  return left !== undefined && right !== undefined && timingSafeEqual(left, right)
}

/**
 * Authenticates a request and returns the API's path, or undefined if it is not allowed. kubectl sends no bearer token
 * over plain HTTP. Therefore the token may also be part of the path, as `/token/TOKEN` before the API's path, and the
 * kubeconfig uses this form.
 */
const authorization =
  (token: string) =>
  (path: string, bearer: string): string | undefined => {
    const [, marker, pathToken, ...rest] = path.split("/")
    if (marker === "token" && pathToken !== undefined) return sameSecret(pathToken, token) ? `/${rest.join("/")}` : undefined
    return sameSecret(bearer, token) || open.has(marker ?? "") ? path : undefined
  }

const kubeconfig = (address: string, token: string): string =>
  stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "seatrial-local",
    clusters: [{ name: "seatrial-local", cluster: { server: `${address}/token/${token}`, "insecure-skip-tls-verify": true } }],
    contexts: [{ name: "seatrial-local", context: { cluster: "seatrial-local", user: "seatrial-local", namespace: "default" } }],
    users: [{ name: "seatrial-local", user: { token } }]
  })

const namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"]

const started = Effect.fnUntraced(function* (options: LocalClusterOptions) {
  const objects = yield* ApiObjects
  const kinds = yield* Kinds
  const writes = yield* Writes
  const namespace = kinds.find("", "v1", "namespaces")
  if (namespace !== undefined) {
    for (const name of namespaces) {
      const target = { kind: namespace, namespace: "", subresource: "" }
      yield* writes.create(target, { metadata: { name } }, { dryRun: false, strict: false, manager: "kube-apiserver" }).pipe(
        Effect.catchIf(
          ({ code }) => code === 409,
          () => Effect.void
        )
      )
    }
  }
  const handle: Handler = Effect.fnUntraced(function* (call) {
    const [root, ...rest] = call.path
    if (root !== undefined && open.has(root)) return root === "version" ? { code: 200, json: version } : { code: 200, text: "ok" }
    if (root === "openapi") {
      const document =
        rest[0] === "v3" ? openApiV3(rest.slice(1), kinds.all(), call.prefix) : rest.length === 1 && rest[0] === "v2" ? openApiV2(kinds.all()) : undefined
      return document === undefined ? yield* KubeStatus.noSuchPath() : { code: 200, json: document }
    }
    const document = call.method === "GET" ? discovery(call.path, kinds.all()) : undefined
    return isObject(document) ? { code: 200, json: document } : yield* objects.handle(call)
  })
  const token = options.token ?? randomBytes(24).toString("hex")
  const port = yield* serve(options.through === undefined ? handle : options.through(handle), authorization(token), options.port)
  const address = `http://127.0.0.1:${port}`
  return { address, token, kubeconfig: kubeconfig(address, token) }
})

const layerObjects = ApiObjects.layer.pipe(
  Layer.provideMerge(layerGarbageCollector),
  Layer.provideMerge(Writes.layer),
  Layer.provideMerge(Kinds.layer),
  Layer.provideMerge(ObjectStore.layerSql)
)

/**
 * A Kubernetes API server for development. It stores its objects in the database of `SqlClient` and must be the only
 * writer of this database.
 */
export class LocalCluster extends Context.Service<
  LocalCluster,
  {
    /** `http://127.0.0.1:PORT`. Requests must contain the token as a bearer token. */
    readonly address: string
    readonly token: string
    /** YAML for kubectl and any client library. */
    readonly kubeconfig: string
  }
>()("seatrial/local/LocalCluster") {
  /** Listens until the scope closes. Fails if the port is in use. */
  static readonly make = Effect.fnUntraced(function* (options: LocalClusterOptions) {
    // Built in the caller's scope, so that background fibers live as long as the server.
    const context = yield* Layer.build(layerObjects)
    return LocalCluster.of(yield* Effect.provideContext(started(options), context))
  })

  static readonly layer = (options: LocalClusterOptions) => Layer.effect(LocalCluster, LocalCluster.make(options))
}
