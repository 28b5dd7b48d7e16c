import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { isIPv6 } from "node:net"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { Config, Context, Effect, Layer } from "effect"
import { type Access, type Credentials, KubeConnectionError } from "./access.ts"
import { KubeError } from "./KubeError.ts"

export interface KubeConnectionConfig {
  /** Path of a kubeconfig, or several with the platform's delimiter (merged, the first wins the context). Absent: in-cluster, then `~/.kube/config`. */
  readonly kubeconfig?: string | undefined
  /** Name of the context to use. Absent: the kubeconfig's current one. */
  readonly context?: string | undefined
  /** Folder with `token`, `ca.crt` and `namespace` of the pod's own ServiceAccount. Absent: where Kubernetes mounts it. */
  readonly serviceAccount?: string | undefined
}

/** Where Kubernetes mounts a pod's own ServiceAccount. */
const mountedAt = "/var/run/secrets/kubernetes.io/serviceaccount"

/**
 * The access that a program has in its own cluster. It is read here: the library that reads kubeconfigs takes some 50 MB, and most of a second of every start, and is loaded
 * where there is one.
 */
const inCluster = Effect.fnUntraced(function* (folder: string): Effect.fn.Return<Access, KubeConnectionError> {
  const read = (name: string) =>
    Effect.tryPromise({
      try: () => readFile(join(folder, name), "utf8"),
      catch: () => new KubeError({ reason: "Retryable", message: `the pod's ServiceAccount could not be read: ${join(folder, name)}` })
    })
  const where = Config.all({ host: Config.String("KUBERNETES_SERVICE_HOST"), port: Config.Port("KUBERNETES_SERVICE_PORT") })
  const { host, port } = yield* Effect.mapError(
    where,
    (error) => new KubeConnectionError({ message: `a ServiceAccount is mounted at ${folder}, but not where the API server is: ${error.message}` })
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
  const named = kubeconfig.split(delimiter).filter((path) => path !== "")
  if (named.length === 0 && existsSync(join(serviceAccount, "token"))) {
    if (context === "") return yield* inCluster(serviceAccount)
    return yield* new KubeConnectionError({ message: `the context ${context} is asked for, but no kubeconfig that has it: set KUBECONFIG` })
  }
  const home = join(homedir(), ".kube", "config")
  const files = named.length === 0 && existsSync(home) ? [home] : named
  if (files.length === 0) return yield* new KubeConnectionError({ message: "no kubeconfig: set KUBECONFIG, or run inside a cluster" })
  const { readKubeconfig } = yield* Effect.promise(() => import("./readKubeconfig.ts"))
  return yield* readKubeconfig(files, context)
})

const make = Effect.fnUntraced(function* (config: KubeConnectionConfig) {
  const { namespace, prepare, server } = yield* find(config)
  // A rotated service account token is valid long before the old one ends, so ten seconds are never too late.
  const [credentials, forget] = yield* Effect.cachedInvalidateWithTTL(prepare, (exit) => (exit._tag === "Success" ? "10 seconds" : 0))
  return KubeConnection.of({ server, namespace, credentials, forget })
})

/** Where the API server is and how to authenticate to it. */
export class KubeConnection extends Context.Service<
  KubeConnection,
  {
    readonly server: URL
    /** The context's namespace; in a cluster the program's own. */
    readonly namespace: string
    /** Kept for ten seconds, so that rotated tokens and certificates are taken up. */
    readonly credentials: Effect.Effect<Credentials, KubeError>
    /** Forgets the credentials kept, after a server has refused them. */
    readonly forget: Effect.Effect<void>
  }
>()("seatrial/KubeConnection") {
  static readonly layer = (config: KubeConnectionConfig): Layer.Layer<KubeConnection, KubeConnectionError> => Layer.effect(KubeConnection, make(config))

  static readonly layerFrom = (config: Config.Wrap<KubeConnectionConfig>): Layer.Layer<KubeConnection, KubeConnectionError | Config.ConfigError> =>
    Layer.effect(KubeConnection, Effect.flatMap(Config.unwrap(config), make))

  /** From the settings `KUBECONFIG` and `KUBE_CONTEXT`, both optional. */
  static readonly layerConfig = KubeConnection.layerFrom({
    kubeconfig: Config.String("KUBECONFIG").pipe(Config.withDefault(undefined)),
    context: Config.String("KUBE_CONTEXT").pipe(Config.withDefault(undefined))
  })
}
