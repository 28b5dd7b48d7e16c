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

const systemNamespaces = ["default", "kube-system", "kube-public", "kube-node-lease"]

const graceOf = (kind: Kind, object: JsonObject, asked: number | undefined): number => {
  if (kind.custom || kind.kind !== "Pod") return 0
  const phase = textAt(object, "status", "phase")
  if (textAt(object, "spec", "nodeName") === "" || phase === "Succeeded" || phase === "Failed") return 0
  const own = at(object, "spec", "terminationGracePeriodSeconds")
  return asked ?? (typeof own === "number" ? own : 30)
}

/**
 * What happens to an object that is deleted: it is removed immediately, or marked so that its finalizers, its agent or
 * its content can finish.
 */
export const deletion = Effect.fnUntraced(function* (
  target: { readonly kind: Kind; readonly name: string },
  current: Stored,
  options: DeleteOptions
): Effect.fn.Return<Mutation, KubeStatus> {
  const { kind, name } = target
  if (options.uid !== "" && options.uid !== current.uid) {
    return yield* KubeStatus.conflict(kind, name, `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${current.uid}`)
  }
  if (options.resourceVersion !== "" && options.resourceVersion !== String(current.version)) {
    return yield* KubeStatus.conflict(
      kind,
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${current.version}`
    )
  }
  if (kind.stored === "/namespaces" && systemNamespaces.includes(name)) return yield* KubeStatus.forbidden(kind, name, "this namespace may not be deleted")
  const { object } = current
  const now = yield* Clock.currentTimeMillis
  const grace = graceOf(kind, object, options.grace)
  const deleting = at(object, "metadata", "deletionTimestamp") !== undefined
  const extra = options.propagation === "Foreground" ? ["foregroundDeletion"] : options.propagation === "Orphan" ? ["orphan"] : []
  const finalizers = deleting ? listAt(object, "metadata", "finalizers") : [...new Set([...listAt(object, "metadata", "finalizers"), ...extra])]
  const waits = finalizers.length > 0 || (kind.stored === "/namespaces" && listAt(object, "spec", "finalizers").length > 0)
  if (grace === 0 && !waits) return { to: "remove", object: current }
  const remaining = at(object, "metadata", "deletionGracePeriodSeconds")
  if (deleting && (typeof remaining !== "number" || remaining <= grace)) return { to: "keep", object: current }
  const generation = at(object, "metadata", "generation")
  const metadata: JsonObject = {
    ...fieldsAt(object, "metadata"),
    ...(finalizers.length > 0 ? { finalizers } : {}),
    ...(typeof generation === "number" ? { generation: generation + 1 } : {}),
    deletionTimestamp: rfc3339(now + grace * 1_000),
    deletionGracePeriodSeconds: grace
  }
  const marked = { ...object, metadata }
  return { to: "put", object: { ...current, object: kind.stored === "/namespaces" ? put(marked, ["status", "phase"], "Terminating") : marked } }
})

const policies = ["Background", "Foreground", "Orphan"]

/** Reads `DeleteOptions` from the body and the query of a request; 422 if they contradict each other. */
export const deleteOptions = (kind: Kind, body: Json | undefined, query: URLSearchParams): Result.Result<DeleteOptions, KubeStatus> => {
  const policy = textAt(body, "propagationPolicy") || (query.get("propagationPolicy") ?? "")
  const refused = (field: string, message: string, reason = "FieldValueInvalid") =>
    Result.fail(KubeStatus.invalid({ ...kind, kind: "DeleteOptions", group: "meta.k8s.io" }, "", [{ reason, field, message }]))
  if (policy !== "" && !policies.includes(policy)) {
    const message = `Unsupported value: "${policy}": supported values: ${policies.map((one) => `"${one}"`).join(", ")}, "nil"`
    return refused("propagationPolicy", message, "FieldValueNotSupported")
  }
  if (policy !== "" && typeof at(body, "orphanDependents") === "boolean") {
    return refused("propagationPolicy", `Invalid value: "${policy}": orphanDependents and deletionPropagation cannot be both set`)
  }
  const grace = at(body, "gracePeriodSeconds") ?? (query.has("gracePeriodSeconds") ? Number(query.get("gracePeriodSeconds")) : undefined)
  const orphan = at(body, "orphanDependents")
  return Result.succeed({
    dryRun: query.get("dryRun") === "All" || listAt(body, "dryRun").includes("All"),
    uid: textAt(body, "preconditions", "uid"),
    resourceVersion: textAt(body, "preconditions", "resourceVersion"),
    grace: typeof grace === "number" ? grace : undefined,
    // By default jobs keep their pods. Kubernetes preserves this behavior from before the option existed.
    propagation: policy || (orphan === true || (kind.group === "batch" && orphan === undefined) ? "Orphan" : "Background")
  })
}
