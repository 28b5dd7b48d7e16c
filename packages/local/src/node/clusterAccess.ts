import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { ContainerHost } from "./ContainerRunner.ts"
import type { LocalMount } from "./localWords.ts"
import type { BoundPod } from "./PodObject.ts"

/** The folder in which Kubernetes' clients look for the credentials of a pod. */
const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

/** Lifetimes of the tokens that the pod mounts, in seconds. */
export const tokenLifetimes = (pod: BoundPod): ReadonlyArray<number> =>
  (pod.spec.volumes ?? []).flatMap(({ projected }) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }) =>
      serviceAccountToken === undefined ? [] : [Math.max(600, serviceAccountToken.expirationSeconds ?? 3_600)]
    )
  )

const kubeconfig = (server: string, folder: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "pod", cluster: { server, "certificate-authority": join(folder, "ca.crt") } }],
    users: [{ name: "pod", user: { "auth-provider": { name: "tokenFile", config: { tokenFile: join(folder, "token") } } } }],
    contexts: [{ name: "pod", context: { cluster: "pod", user: "pod" } }],
    "current-context": "pod"
  })

/**
 * The variables with which a container reaches the API server as its own ServiceAccount. A local process cannot have
 * files at the default path, so `KUBECONFIG` names them instead. Empty for a pod that mounts no token there.
 */
export const clusterEnvironment = ({ apiServer, folder }: ContainerHost, mounts: ReadonlyArray<LocalMount>): Readonly<Record<string, string>> => {
  const mount = mounts.find((candidate) => candidate.mountPath.replace(/\/$/, "") === mountPath)
  if (apiServer === undefined || mount === undefined) return {}
  const { hostname, port } = new URL(apiServer)
  const path = join(folder.path, "kubeconfig")
  writeFileSync(path, kubeconfig(apiServer, mount.local), { mode: 0o600 })
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, KUBECONFIG: path }
}
