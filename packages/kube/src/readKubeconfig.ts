import type { OutgoingHttpHeaders } from "node:http"
import type { RequestOptions } from "node:https"
import { KubeConfig } from "@kubernetes/client-node"
import { Effect } from "effect"
import { type Access, type Credentials, KubeConnectionError } from "./access.ts"
import { KubeError } from "./KubeError.ts"

const load = ([first, ...rest]: ReadonlyArray<string>, context: string): KubeConfig => {
  const loaded = new KubeConfig()
  if (first !== undefined) loaded.loadFromFile(first)
  for (const path of rest) {
    const other = new KubeConfig()
    other.loadFromFile(path)
    loaded.mergeConfig(other, true)
  }
  if (context !== "") loaded.setCurrentContext(context)
  return loaded
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/**
 * The access of a context in the merged kubeconfigs. Without a context name: the current context of the first file that
 * sets it.
 */
export const readKubeconfig = Effect.fnUntraced(function* (paths: ReadonlyArray<string>, contextName: string): Effect.fn.Return<Access, KubeConnectionError> {
  const loaded = yield* Effect.try({ try: () => load(paths, contextName), catch: (cause) => new KubeConnectionError({ message: messageOf(cause) }) })
  const context = loaded.getContextObject(loaded.getCurrentContext())
  const cluster = loaded.getCurrentCluster()
  if (context === null || cluster === null) {
    return yield* new KubeConnectionError({
      message: `the kubeconfig has no context ${loaded.getCurrentContext() ?? "(none is current)"}, or it names no cluster`
    })
  }
  const server = yield* Effect.try({
    try: () => new URL(cluster.server),
    catch: () => new KubeConnectionError({ message: `the server of cluster ${cluster.name} is not a URL` })
  })
  // For a plain HTTP server, the library returns options only if certificate verification is disabled.
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
    // The output of a credential plug-in may contain secrets, so its message is not repeated.
    catch: () => new KubeError({ reason: "Retryable", message: "the credentials of the kubeconfig could not be obtained" })
  })
  return { server, namespace: context.namespace ?? "default", prepare }
})
