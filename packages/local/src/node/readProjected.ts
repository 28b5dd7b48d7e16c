import { defineResource, type KubeClient, objectSchema } from "@seatrial/kube"
import { Effect, Schema } from "effect"
import { type BoundPod, namespaceOf, type ProjectedSource, uidOf } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { readFiles } from "./PodSources.ts"
import { podField } from "./podEnvironment.ts"

/** The addresses of the pod and its node. */
export interface PodIps {
  readonly podIP: string
  readonly hostIP: string
}

/** The subresource that creates a token of a ServiceAccount. */
const tokenRequest = (account: string) =>
  defineResource({
    group: "",
    version: "v1",
    plural: `serviceaccounts/${encodeURIComponent(account)}/token`,
    kind: "TokenRequest",
    namespaced: true,
    schema: objectSchema({ spec: Schema.Unknown, status: Schema.optionalKey(Schema.Struct({ token: Schema.String })) })
  })

const problem = (message: string) => new PodProblem({ reason: "CreateContainerConfigError", message })

/** A token of the pod's ServiceAccount that is bound to the pod and expires with it. */
const readToken = Effect.fnUntraced(function* (kube: KubeClient["Service"], pod: BoundPod, source: NonNullable<ProjectedSource["serviceAccountToken"]>) {
  const name = pod.spec.serviceAccountName ?? "default"
  const namespace = namespaceOf(pod)
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { name, namespace },
    spec: {
      ...(source.audience === undefined ? {} : { audiences: [source.audience] }),
      expirationSeconds: source.expirationSeconds ?? 3_600,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: uidOf(pod) }
    }
  }
  const answered = yield* Effect.mapError(kube.create(tokenRequest(name), request), (error) =>
    problem(`a token of service account "${name}" could not be obtained: ${error.message}`)
  )
  return answered.status === undefined ? yield* problem(`the server returned no token for service account "${name}"`) : answered.status.token
})

/** The files of one source of a projected volume, by path. */
export const readProjected = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  pod: BoundPod,
  source: ProjectedSource,
  addresses: PodIps
): Effect.fn.Return<ReadonlyMap<string, string | Buffer>, PodProblem> {
  if (source.serviceAccountToken !== undefined) return new Map([[source.serviceAccountToken.path, yield* readToken(kube, pod, source.serviceAccountToken)]])
  const files = new Map<string, string | Buffer>()
  for (const { fieldRef, path } of source.downwardAPI?.items ?? []) {
    const value = fieldRef === undefined ? undefined : podField(pod, fieldRef.fieldPath, addresses)
    if (value === undefined) return yield* problem(`the field of ${path} is not supported`)
    files.set(path, value)
  }
  const object = source.secret ?? source.configMap
  if (object === undefined) return files
  const kind = source.secret === undefined ? "configmap" : "secret"
  return new Map([...files, ...(yield* readFiles(kube, namespaceOf(pod), { ...object, kind }))])
})
