import { existsSync } from "node:fs"
import type { Agent, OutgoingHttpHeaders } from "node:http"
import type { RequestOptions } from "node:https"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { KubeConfig } from "@kubernetes/client-node"
import { Config, Context, Data, Effect, Layer } from "effect"
import { KubeError } from "./KubeError.ts"

/** No way to the cluster is configured, or what is configured cannot be read. */
export class KubeConnectionError extends Data.TaggedError("KubeConnectionError")<{ readonly message: string }> {}

export interface KubeConnectionConfig {
  /** Path of a kubeconfig, or several with the platform's delimiter (merged, the first wins the context). Absent: in-cluster, then `~/.kube/config`. */
  readonly kubeconfig?: string | undefined
  /** Name of the context to use. Absent: the kubeconfig's current one. */
  readonly context?: string | undefined
}

/** What a request carries to be let in: headers, and for TLS the authority and client certificate. */
export interface Credentials {
  readonly headers: OutgoingHttpHeaders
  readonly tls: RequestOptions
  /** Only where the kubeconfig names a proxy. */
  readonly proxy: Agent | undefined
}

const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

const load = (config: KubeConnectionConfig): KubeConfig => {
  const loaded = new KubeConfig()
  const [first, ...others] = (config.kubeconfig ?? "").split(delimiter).filter((path) => path !== "")
  const home = join(homedir(), ".kube", "config")
  if (first !== undefined) {
    loaded.loadFromFile(first)
    for (const path of others) {
      const other = new KubeConfig()
      other.loadFromFile(path)
      loaded.mergeConfig(other, true)
    }
  } else if (existsSync(serviceAccountToken)) {
    loaded.loadFromCluster()
  } else if (existsSync(home)) {
    loaded.loadFromFile(home)
  } else {
    throw new Error("no kubeconfig: set KUBECONFIG, or run inside a cluster")
  }
  if (config.context !== undefined && config.context !== "") loaded.setCurrentContext(config.context)
  return loaded
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

const make = Effect.fnUntraced(function* (config: KubeConnectionConfig) {
  const loaded = yield* Effect.try({ try: () => load(config), catch: (cause) => new KubeConnectionError({ message: messageOf(cause) }) })
  const context = loaded.getContextObject(loaded.getCurrentContext())
  const cluster = loaded.getCurrentCluster()
  if (context === null || cluster === null) {
    return yield* new KubeConnectionError({
      message: `the kubeconfig has no context ${loaded.getCurrentContext() ?? "(none is current)"}, or it names no cluster`
    })
  }
  const server = yield* Effect.try({
    try: () => new URL(cluster.server),
    catch: () => new KubeConnectionError({ message: `the server of cluster ${cluster.name} is no URL` })
  })
  // The library refuses to prepare any options for a plain-text server unless it is told that nothing is verified there.
  if (server.protocol === "http:") {
    loaded.clusters = loaded.clusters.map((each) => (each.name === cluster.name ? { ...each, skipTLSVerify: true } : each))
  }
  const prepare = Effect.tryPromise({
    try: async (): Promise<Credentials> => {
      const headers: OutgoingHttpHeaders = {}
      const prepared: RequestOptions = { headers }
      await loaded.applyToHTTPSOptions(prepared)
      const { agent, headers: _, ...tls } = prepared
      return { headers, tls, proxy: cluster.proxyUrl !== undefined && typeof agent === "object" ? agent : undefined }
    },
    // What a credential plug-in printed may hold secrets, so its message is not repeated.
    catch: () => new KubeError({ reason: "Retryable", message: "the credentials of the kubeconfig could not be had" })
  })
  // A rotated service account token is valid long before the old one ends, so ten seconds are never too late.
  const [credentials, forget] = yield* Effect.cachedInvalidateWithTTL(prepare, (exit) => (exit._tag === "Success" ? "10 seconds" : 0))
  return KubeConnection.of({ server, namespace: context.namespace ?? "default", credentials, forget })
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
