import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { isIPv6 } from "node:net"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { Config, Context, Effect, Layer } from "effect"
import { type Access, type Credentials, KubeConnectionError } from "./access.ts"
import { KubeError } from "./KubeError.ts"

export interface KubeConnectionConfig {
  /**
   * Path of a kubeconfig, or several paths with the platform's delimiter. They are merged; the first one's current
   * context wins. Absent: in-cluster access, then `~/.kube/config`.
   */
  readonly kubeconfig?: string | undefined
  /** Name of the context. Absent: the kubeconfig's current context. */
  readonly context?: string | undefined
  /**
   * Folder with `token`, `ca.crt` and `namespace` of the pod's ServiceAccount. Absent: Kubernetes' default mount path.
   */
  readonly serviceAccount?: string | undefined
}

/** Default mount path of a pod's ServiceAccount. */
const mountedAt = "/var/run/secrets/kubernetes.io/serviceaccount"

/**
 * The in-cluster access of a pod. This code replaces the kubeconfig library's: loading that library takes about 50 MB
 * and most of a second, so it is loaded only to read a kubeconfig.
 */
const inCluster = Effect.fnUntraced(function* (folder: string): Effect.fn.Return<Access, KubeConnectionError> {
  const read = (name: string) =>
    Effect.tryPromise({
      try: () => readFile(join(folder, name), "utf8"),
      catch: () => new KubeError({ reason: "Retryable", message: `cannot read the pod's ServiceAccount: ${join(folder, name)}` })
    })
  const where = Config.all({ host: Config.String("KUBERNETES_SERVICE_HOST"), port: Config.Port("KUBERNETES_SERVICE_PORT") })
  const { host, port } = yield* Effect.mapError(
    where,
    (error) => new KubeConnectionError({ message: `a ServiceAccount is mounted at ${folder}, but the address of the API server is missing: ${error.message}` })
  )
  return {
    server: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
    namespace: yield* Effect.orElseSucceed(
      Effect.map(read("namespace"), (text) => text.trim()),
      () => "default"
    ),
    prepare: Effect.map(Effect.all([read("token"), read("ca.crt")]), ([token, ca]) => ({
      headers: { authorization: `Bearer ${token.trim()}` },
      tls: { ca },
      proxy: undefined
    }))
  }
})

const find = Effect.fnUntraced(function* ({
  context = "",
  kubeconfig = "",
  serviceAccount = mountedAt
}: KubeConnectionConfig): Effect.fn.Return<Access, KubeConnectionError> {
  const configuredPaths = kubeconfig.split(delimiter).filter((path) => path !== "")
  if (configuredPaths.length === 0 && existsSync(join(serviceAccount, "token"))) {
    if (context === "") return yield* inCluster(serviceAccount)
    return yield* new KubeConnectionError({ message: `no kubeconfig has the context ${context}: set KUBECONFIG` })
  }
  const home = join(homedir(), ".kube", "config")
  const files = configuredPaths.length === 0 && existsSync(home) ? [home] : configuredPaths
  if (files.length === 0) return yield* new KubeConnectionError({ message: "no kubeconfig: set KUBECONFIG, or run inside a cluster" })
  const { readKubeconfig } = yield* Effect.promise(() => import("./readKubeconfig.ts"))
  return yield* readKubeconfig(files, context)
})

const make = Effect.fnUntraced(function* (config: KubeConnectionConfig) {
  const { namespace, prepare, server } = yield* find(config)
  // A rotated service account token is valid long before the old one expires, so a cache of ten seconds is safe.
  const [credentials, forget] = yield* Effect.cachedInvalidateWithTTL(prepare, (exit) => (exit._tag === "Success" ? "10 seconds" : 0))
  return KubeConnection.of({ server, namespace, credentials, forget })
})

/** The address of the API server and the credentials for it. */
export class KubeConnection extends Context.Service<
  KubeConnection,
  {
    readonly server: URL
    /** The namespace of the context; in a cluster, the program's own. */
    readonly namespace: string
    /** Cached for ten seconds, so that rotated tokens and certificates take effect. */
    readonly credentials: Effect.Effect<Credentials, KubeError>
    /** Drops the cached credentials after a server has rejected them. */
    readonly forget: Effect.Effect<void>
  }
>()("seatrial/KubeConnection") {
  static readonly layer = (config: KubeConnectionConfig): Layer.Layer<KubeConnection, KubeConnectionError> => Layer.effect(KubeConnection, make(config))

  static readonly layerFrom = (config: Config.Wrap<KubeConnectionConfig>): Layer.Layer<KubeConnection, KubeConnectionError | Config.ConfigError> =>
    Layer.effect(KubeConnection, Effect.flatMap(Config.unwrap(config), make))

  /** From the optional settings `KUBECONFIG` and `KUBE_CONTEXT`. */
  static readonly layerConfig = KubeConnection.layerFrom({
    kubeconfig: Config.String("KUBECONFIG").pipe(Config.withDefault(undefined)),
    context: Config.String("KUBE_CONTEXT").pipe(Config.withDefault(undefined))
  })
}
