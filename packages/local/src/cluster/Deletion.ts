import { Clock, Effect, Result } from "effect"
import { at, fieldsAt, type Json, type JsonObject, listAt, put, rfc3339, textAt } from "./Json.ts"
import type { Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { Mutation, Stored } from "./ObjectStore.ts"

export interface DeleteOptions {
  readonly dryRun: boolean
  readonly uid: string
  readonly resourceVersion: string
  /** In seconds. */
  readonly grace: number | undefined
  readonly propagation: string
}

interface DeletionTarget {
  readonly kind: Kind
  readonly name: string
}

const systemNamespaces = ["default", "kube-system", "kube-public", "kube-node-lease"]

const graceOf = (kind: Kind, object: JsonObject, requestedSeconds: number | undefined): number => {
  if (kind.custom || kind.kind !== "Pod") return 0
  const phase = textAt(object, "status", "phase")
  if (textAt(object, "spec", "nodeName") === "" || phase === "Succeeded" || phase === "Failed") return 0
  const own = at(object, "spec", "terminationGracePeriodSeconds")
  return requestedSeconds ?? (typeof own === "number" ? own : 30)
}

const isNamespace = (kind: Kind): boolean => kind.stored === "/namespaces"

/** Refuses a deletion of another object or version, or of a system namespace; null if it is allowed. */
const deletionRefusal = ({ kind, name }: DeletionTarget, current: Stored, options: DeleteOptions): KubeStatus | null => {
  if (options.uid !== "" && options.uid !== current.uid) {
    return KubeStatus.conflict(kind, name, `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${current.uid}`)
  }
  if (options.resourceVersion !== "" && options.resourceVersion !== String(current.version)) {
    return KubeStatus.conflict(
      kind,
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${current.version}`
    )
  }
  return isNamespace(kind) && systemNamespaces.includes(name) ? KubeStatus.forbidden(kind, name, "this namespace may not be deleted") : null
}

const propagationFinalizers: Readonly<Record<string, ReadonlyArray<string>>> = { Foreground: ["foregroundDeletion"], Orphan: ["orphan"] }

/** The finalizers that a deletion waits for. The first deletion adds the finalizer of its propagation policy. */
const remainingFinalizers = (object: JsonObject, propagation: string): ReadonlyArray<Json> => {
  const finalizers = listAt(object, "metadata", "finalizers")
  return isDeleting(object) ? finalizers : [...new Set([...finalizers, ...(propagationFinalizers[propagation] ?? [])])]
}

const isDeleting = (object: JsonObject): boolean => at(object, "metadata", "deletionTimestamp") !== undefined

const markDeleted = (kind: Kind, object: JsonObject, mark: { readonly finalizers: ReadonlyArray<Json>; readonly grace: number; readonly now: number }) => {
  const generation = at(object, "metadata", "generation")
  const metadata: JsonObject = {
    ...fieldsAt(object, "metadata"),
    ...(mark.finalizers.length > 0 ? { finalizers: mark.finalizers } : {}),
    ...(typeof generation === "number" ? { generation: generation + 1 } : {}),
    deletionTimestamp: rfc3339(mark.now + mark.grace * 1_000),
    deletionGracePeriodSeconds: mark.grace
  }
  const marked = { ...object, metadata }
  return isNamespace(kind) ? put(marked, ["status", "phase"], "Terminating") : marked
}

/**
 * What happens to an object that is deleted: it is removed immediately, or marked so that its finalizers, its agent or
 * its content can finish.
 */
export const deletion = Effect.fnUntraced(function* (target: DeletionTarget, current: Stored, options: DeleteOptions): Effect.fn.Return<Mutation, KubeStatus> {
  const { kind } = target
  const refusal = deletionRefusal(target, current, options)
  if (refusal !== null) return yield* refusal
  const { object } = current
  const now = yield* Clock.currentTimeMillis
  const grace = graceOf(kind, object, options.grace)
  const finalizers = remainingFinalizers(object, options.propagation)
  const waits = finalizers.length > 0 || (isNamespace(kind) && listAt(object, "spec", "finalizers").length > 0)
  if (grace === 0 && !waits) return { to: "remove", object: current }
  const remaining = at(object, "metadata", "deletionGracePeriodSeconds")
  if (isDeleting(object) && (typeof remaining !== "number" || remaining <= grace)) return { to: "keep", object: current }
  return { to: "put", object: { ...current, object: markDeleted(kind, object, { finalizers, grace, now }) } }
})

const policies = ["Background", "Foreground", "Orphan"]

/** The problem of a propagation policy, or null. */
const policyProblem = (policy: string, body: Json | undefined): { readonly reason: string; readonly message: string } | null => {
  if (policy !== "" && !policies.includes(policy)) {
    const message = `Unsupported value: "${policy}": supported values: ${policies.map((one) => `"${one}"`).join(", ")}, "nil"`
    return { reason: "FieldValueNotSupported", message }
  }
  if (policy === "" || typeof at(body, "orphanDependents") !== "boolean") return null
  return { reason: "FieldValueInvalid", message: `Invalid value: "${policy}": orphanDependents and deletionPropagation cannot be both set` }
}

const requestedGrace = (body: Json | undefined, query: URLSearchParams): number | undefined => {
  const grace = at(body, "gracePeriodSeconds") ?? (query.has("gracePeriodSeconds") ? Number(query.get("gracePeriodSeconds")) : undefined)
  return typeof grace === "number" ? grace : undefined
}

/** By default jobs keep their pods. Kubernetes preserves this behavior from before the option existed. */
const defaultPolicy = (kind: Kind, body: Json | undefined): string => {
  const orphan = at(body, "orphanDependents")
  return orphan === true || (kind.group === "batch" && orphan === undefined) ? "Orphan" : "Background"
}

/** Reads `DeleteOptions` from the body and the query of a request; 422 if they contradict each other. */
export const deleteOptions = (kind: Kind, body: Json | undefined, query: URLSearchParams): Result.Result<DeleteOptions, KubeStatus> => {
  const policy = textAt(body, "propagationPolicy") || (query.get("propagationPolicy") ?? "")
  const problem = policyProblem(policy, body)
  if (problem !== null) {
    const options = { ...kind, kind: "DeleteOptions", group: "meta.k8s.io" }
    return Result.fail(KubeStatus.invalid(options, "", [{ ...problem, field: "propagationPolicy" }]))
  }
  return Result.succeed({
    dryRun: query.get("dryRun") === "All" || listAt(body, "dryRun").includes("All"),
    uid: textAt(body, "preconditions", "uid"),
    resourceVersion: textAt(body, "preconditions", "resourceVersion"),
    grace: requestedGrace(body, query),
    propagation: policy || defaultPolicy(kind, body)
  })
}
