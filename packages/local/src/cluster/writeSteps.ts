import { at, equal, fieldsAt, type JsonObject, listAt, put, textAt, without } from "./Json.ts"
import { apiVersionOf, hasStatus, type Kind } from "./Kind.ts"
import { type Cause, KubeStatus } from "./KubeStatus.ts"
import type { Stored } from "./ObjectStore.ts"

/** One object, or a subresource of it. */
export interface Target {
  readonly kind: Kind
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  readonly subresource: string
}

/** Keeps a custom resource definition until its objects are deleted. */
export const definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"

/** Refuses a body that contradicts the path of the request; null if it agrees. */
export const createRefusal = (namespace: string, body: JsonObject): KubeStatus | null => {
  const bodyNamespace = textAt(body, "metadata", "namespace")
  if (bodyNamespace !== "" && bodyNamespace !== namespace) {
    return KubeStatus.badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
  }
  if (textAt(body, "metadata", "resourceVersion") === "") return null
  return KubeStatus.badRequest("resourceVersion should not be set on objects to be created")
}

/** The metadata of a new object. */
export const firstMetadata = (
  kind: Kind,
  body: JsonObject,
  { name, namespace, time, uid }: { readonly name: string; readonly namespace: string; readonly uid: string; readonly time: string }
): JsonObject => {
  const metadata = without(fieldsAt(body, "metadata"), "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields")
  const finalizers = kind.plural === "customresourcedefinitions" ? [...new Set([...listAt(metadata, "finalizers"), definitionFinalizer])] : metadata.finalizers
  return {
    ...without(metadata, "finalizers"),
    ...(finalizers === undefined ? {} : { finalizers }),
    name,
    ...(kind.namespaced ? { namespace } : {}),
    uid,
    creationTimestamp: time,
    ...(kind.custom || hasStatus(kind) ? { generation: 1 } : {})
  }
}

/** An object that a request wants to store in place of the current one. */
interface Replacement {
  readonly target: Target
  readonly current: Stored
  readonly object: JsonObject
  readonly isPatch: boolean
}

const versionRefusal = ({ current, object, target: { kind, name } }: Replacement): KubeStatus | null => {
  const version = textAt(object, "metadata", "resourceVersion")
  if (version === "" && (kind.custom || kind.plural === "leases" || kind.plural === "customresourcedefinitions")) {
    return KubeStatus.invalid(kind, name, [
      { reason: "FieldValueInvalid", field: "metadata.resourceVersion", message: "Invalid value: 0: must be specified for an update" }
    ])
  }
  if (version === "" || version === String(current.version)) return null
  return KubeStatus.conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again")
}

const uidRefusal = ({ current, isPatch, object, target: { kind, name } }: Replacement): KubeStatus | null => {
  const uid = textAt(object, "metadata", "uid")
  if (uid === "" || uid === current.uid) return null
  return isPatch
    ? KubeStatus.invalid(kind, name, [{ reason: "FieldValueInvalid", field: "metadata.uid", message: `Invalid value: "${uid}": field is immutable` }])
    : KubeStatus.conflict(kind, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.uid}`)
}

const nameRefusal = ({ object, target: { name } }: Replacement): KubeStatus | null => {
  const bodyName = textAt(object, "metadata", "name")
  if (bodyName === "" || bodyName === name) return null
  return KubeStatus.badRequest(`the name of the object (${bodyName}) does not match the name on the URL (${name})`)
}

/** Refuses a replacement of another version, another uid or another name; null if it is for the current object. */
export const updateRefusal = (replacement: Replacement): KubeStatus | null => versionRefusal(replacement) ?? uidRefusal(replacement) ?? nameRefusal(replacement)

const immutableMetadata = ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName"]

/** The object after an update: an update of the status changes nothing else, any other keeps the status. */
export const nextObject = ({ kind, subresource }: Target, before: JsonObject, object: JsonObject): JsonObject => {
  const was = fieldsAt(before, "metadata")
  if (subresource === "status") {
    return put({ ...before, metadata: without(was, "managedFields", "resourceVersion") }, ["status"], object.status)
  }
  const metadata = {
    ...without(fieldsAt(object, "metadata"), ...immutableMetadata, "resourceVersion", "selfLink", "managedFields"),
    ...Object.fromEntries(immutableMetadata.flatMap((field) => (was[field] === undefined ? [] : [[field, was[field]] as const])))
  }
  return put({ ...object, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }, ["status"], hasStatus(kind) ? before.status : object.status)
}

/** An object that is being deleted accepts no new finalizers. */
export const newFinalizerCauses = (was: JsonObject, next: JsonObject): ReadonlyArray<Cause> => {
  const added = listAt(next, "metadata", "finalizers").filter((one) => !listAt(was, "finalizers").includes(one))
  if (added.length === 0 || was.deletionTimestamp === undefined) return []
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`
  return [{ reason: "FieldValueForbidden", field: "metadata.finalizers", message }]
}

/** Whether everything except metadata and status is equal. */
const sameIntent = (a: JsonObject, b: JsonObject, status: boolean): boolean => {
  const ignored = status ? ["metadata", "status", "apiVersion", "kind"] : ["metadata", "apiVersion", "kind"]
  return equal(without(a, ...ignored), without(b, ...ignored))
}

/** Counts the generation up if more than metadata and status changed. */
export const withGeneration = (kind: Kind, before: JsonObject, admitted: JsonObject): JsonObject => {
  const generation = at(before, "metadata", "generation")
  if (typeof generation !== "number" || sameIntent(before, admitted, hasStatus(kind))) return admitted
  return put(admitted, ["metadata", "generation"], generation + 1)
}

/** Whether an object that is being deleted has nothing left to wait for. */
export const isReleased = (was: JsonObject, intended: JsonObject): boolean => {
  const grace = at(was, "deletionGracePeriodSeconds")
  return was.deletionTimestamp !== undefined && listAt(intended, "metadata", "finalizers").length === 0 && (grace === undefined || grace === 0)
}
