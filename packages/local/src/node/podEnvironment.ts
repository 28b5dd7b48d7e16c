import type { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import { expand } from "./localWords.ts"
import { type BoundPod, type Container, namespaceOf, uidOf } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { readSource } from "./PodSources.ts"

const subscript = /^metadata\.(labels|annotations)\['([^']*)'\]$/

/** The value of a `fieldRef`; undefined if this node does not support the field. */
export const podField = (pod: BoundPod, path: string, addresses: { readonly podIP: string; readonly hostIP: string }): string | undefined => {
  switch (path) {
    case "metadata.name":
      return pod.metadata.name
    case "metadata.namespace":
      return namespaceOf(pod)
    case "metadata.uid":
      return uidOf(pod)
    case "spec.nodeName":
      return pod.spec.nodeName ?? ""
    case "status.podIP":
    case "status.podIPs":
      return addresses.podIP
    case "status.hostIP":
      return addresses.hostIP
  }
  const match = subscript.exec(path)
  if (match === null) return undefined
  return (match[1] === "labels" ? pod.metadata.labels : pod.metadata.annotations)?.[match[2] ?? ""] ?? ""
}

/**
 * The variables in the pod's spec in Kubernetes' order: `envFrom`, then `env`. A later variable may refer to an earlier
 * one as `$(NAME)`.
 */
export const podEnvironment = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  pod: BoundPod,
  container: Container,
  addresses: { readonly podIP: string; readonly hostIP: string }
): Effect.fn.Return<ReadonlyMap<string, string>, PodProblem> {
  const namespace = namespaceOf(pod)
  const variables = new Map<string, string>()
  for (const { prefix = "", secretRef, configMapRef } of container.envFrom ?? []) {
    const reference = secretRef ?? configMapRef
    if (reference === undefined) continue
    const data = yield* readSource(kube, secretRef === undefined ? "configmap" : "secret", namespace, reference.name, reference.optional)
    for (const [key, value] of data) variables.set(prefix + key, value.toString("utf8"))
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) {
      variables.set(name, expand(value ?? "", variables))
      continue
    }
    if (valueFrom.fieldRef !== undefined) {
      const { fieldPath } = valueFrom.fieldRef
      const value = podField(pod, fieldPath, addresses)
      if (value === undefined) {
        return yield* new PodProblem({ reason: "CreateContainerConfigError", message: `the field ${fieldPath} of variable ${name} is not supported` })
      }
      variables.set(name, value)
      continue
    }
    const reference = valueFrom.secretKeyRef ?? valueFrom.configMapKeyRef
    if (reference === undefined) continue
    const kind = valueFrom.secretKeyRef === undefined ? "configmap" : "secret"
    const content = (yield* readSource(kube, kind, namespace, reference.name, reference.optional)).get(reference.key)
    if (content !== undefined) variables.set(name, content.toString("utf8"))
    else if (reference.optional !== true) {
      const message = `couldn't find key ${reference.key} in ${kind} ${namespace}/${reference.name}`
      return yield* new PodProblem({ reason: "CreateContainerConfigError", message })
    }
  }
  return variables
})
