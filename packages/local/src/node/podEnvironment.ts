import type { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import { expand } from "./localWords.ts"
import { type BoundPod, type Container, namespaceOf, uidOf } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { readSource } from "./PodSources.ts"

const subscript = /^metadata\.(labels|annotations)\['([^']*)'\]$/

type Addresses = { readonly podIP: string; readonly hostIP: string }

const fields: ReadonlyMap<string, (pod: BoundPod, addresses: Addresses) => string> = new Map([
  ["metadata.name", (pod: BoundPod) => pod.metadata.name],
  ["metadata.namespace", namespaceOf],
  ["metadata.uid", uidOf],
  ["spec.nodeName", (pod: BoundPod) => pod.spec.nodeName ?? ""],
  ["status.podIP", (_: BoundPod, { podIP }: Addresses) => podIP],
  ["status.podIPs", (_: BoundPod, { podIP }: Addresses) => podIP],
  ["status.hostIP", (_: BoundPod, { hostIP }: Addresses) => hostIP]
])

/** The value of a `fieldRef`; undefined if this node does not support the field. */
export const podField = (pod: BoundPod, path: string, addresses: Addresses): string | undefined => {
  const field = fields.get(path)
  if (field !== undefined) return field(pod, addresses)
  const match = subscript.exec(path)
  if (match === null) return undefined
  return (match[1] === "labels" ? pod.metadata.labels : pod.metadata.annotations)?.[match[2] ?? ""] ?? ""
}

const problem = (message: string) => new PodProblem({ reason: "CreateContainerConfigError", message })

type ValueSource = NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>

/** The pod that the variables belong to. */
interface VariableOwner {
  readonly kube: KubeClient["Service"]
  readonly pod: BoundPod
  readonly addresses: Addresses
}

/** The value of a key of a Secret or ConfigMap; undefined if it is optional and missing. */
const keyValue = Effect.fnUntraced(function* ({ kube, pod }: VariableOwner, { configMapKeyRef, secretKeyRef }: ValueSource) {
  const reference = secretKeyRef ?? configMapKeyRef
  if (reference === undefined) return undefined
  const kind = secretKeyRef === undefined ? "configmap" : "secret"
  const namespace = namespaceOf(pod)
  const content = (yield* readSource(kube, kind, namespace, reference.name, reference.optional)).get(reference.key)
  if (content === undefined && reference.optional !== true)
    return yield* problem(`couldn't find key ${reference.key} in ${kind} ${namespace}/${reference.name}`)
  return content?.toString("utf8")
})

/** The value of a variable that refers to another object; undefined if it is not set. */
const referredValue = Effect.fnUntraced(function* (owner: VariableOwner, name: string, source: ValueSource) {
  if (source.fieldRef === undefined) return yield* keyValue(owner, source)
  const { fieldPath } = source.fieldRef
  const value = podField(owner.pod, fieldPath, owner.addresses)
  return value === undefined ? yield* problem(`the field ${fieldPath} of variable ${name} is not supported`) : value
})

/** The variables of a Secret or ConfigMap that a container takes as a whole. */
const sourceVariables = Effect.fnUntraced(function* (
  { kube, pod }: VariableOwner,
  { configMapRef, prefix = "", secretRef }: NonNullable<Container["envFrom"]>[number]
) {
  const reference = secretRef ?? configMapRef
  if (reference === undefined) return []
  const data = yield* readSource(kube, secretRef === undefined ? "configmap" : "secret", namespaceOf(pod), reference.name, reference.optional)
  return [...data].map(([key, value]) => [prefix + key, value.toString("utf8")] as const)
})

/**
 * The variables in the pod's spec in Kubernetes' order: `envFrom`, then `env`. A later variable may refer to an earlier
 * one as `$(NAME)`.
 */
export const podEnvironment = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  pod: BoundPod,
  container: Container,
  addresses: Addresses
): Effect.fn.Return<ReadonlyMap<string, string>, PodProblem> {
  const owner: VariableOwner = { kube, pod, addresses }
  const variables = new Map((yield* Effect.forEach(container.envFrom ?? [], (source) => sourceVariables(owner, source))).flat())
  for (const { name, value, valueFrom } of container.env ?? []) {
    const resolved = valueFrom === undefined ? expand(value ?? "", variables) : yield* referredValue(owner, name, valueFrom)
    if (resolved !== undefined) variables.set(name, resolved)
  }
  return variables
})
