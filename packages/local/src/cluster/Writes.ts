import { randomBytes, randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { admit, firstStatus, fixedCauses } from "./Admission.ts"
import { type DeleteOptions, deletion } from "./Deletion.ts"
import { afterUpdate, type Writer } from "./FieldOwnership.ts"
import { at, equal, fieldsAt, isList, type Json, type JsonObject, listAt, put, rfc3339, textAt } from "./Json.ts"
import { apiVersionOf, builtInKinds, type Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { type Mutation, ObjectStore, type Stored } from "./ObjectStore.ts"
import { createRefusal, firstMetadata, isReleased, newFinalizerCauses, nextObject, type Target, updateRefusal, withGeneration } from "./writeSteps.ts"

export interface WriteOptions {
  readonly dryRun: boolean
  /** Refuse fields that the schema does not contain. Otherwise they are dropped. */
  readonly strict: boolean
  readonly manager: string
  /**
   * Whether the write is a patch, which must not change the uid. A replacement with another uid refers to a deleted
   * object.
   */
  readonly patches?: boolean
}

/** Returns the patched object. Also returns the managed fields if the patch decides about them. */
export type Patch = (current: JsonObject, writer: Writer) => Effect.Effect<{ readonly object: JsonObject; readonly managed?: Json }, KubeStatus>

const letters = "bcdfghjklmnpqrstvwxz2456789"
const suffix = (): string => [...randomBytes(5)].map((byte) => letters[byte % letters.length]).join("")

const namespaceKind = builtInKinds.find(({ plural }) => plural === "namespaces")

const writer = (target: Target, options: WriteOptions, time: string): Writer => ({
  manager: options.manager,
  apiVersion: apiVersionOf(target.kind),
  subresource: target.subresource,
  time
})

const checked = (
  kind: Kind,
  name: string,
  object: JsonObject,
  strict: boolean,
  more: (admitted: JsonObject) => ReadonlyArray<Parameters<typeof KubeStatus.invalid>[2][number]>
) => {
  const admitted = admit(kind, object)
  if (strict && admitted.unknown.length > 0) {
    return Effect.fail(
      KubeStatus.badRequest(
        `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: strict decoding error: ${admitted.unknown
          .toSorted()
          .map((path) => `unknown field "${path}"`)
          .join(", ")}`
      )
    )
  }
  const causes = [...admitted.causes, ...more(admitted.object)]
  return causes.length > 0 ? Effect.fail(KubeStatus.invalid(kind, name, causes)) : Effect.succeed(admitted.object)
}

/** Fails if the namespace of a new object does not exist or ends. */
const inNamespace = (store: ObjectStore["Service"], target: Omit<Target, "name">, name: string) => {
  if (!target.kind.namespaced || namespaceKind === undefined) return Effect.void
  const namespace = store.get(namespaceKind.stored, "", target.namespace)
  if (namespace === undefined) return Effect.fail(KubeStatus.notFound(namespaceKind, target.namespace))
  return at(namespace.object, "metadata", "deletionTimestamp") === undefined
    ? Effect.void
    : Effect.fail(
        KubeStatus.forbidden(target.kind, name, `unable to create new content in namespace ${target.namespace} because it is being terminated`, [
          { reason: "NamespaceTerminating", field: "metadata.namespace", message: `namespace ${target.namespace} is being terminated` }
        ])
      )
}

/** A new object, complete and admitted. */
const prepared = Effect.fnUntraced(function* (
  store: ObjectStore["Service"],
  target: Omit<Target, "name">,
  body: JsonObject,
  options: WriteOptions,
  managed?: Json
) {
  const { kind, namespace } = target
  const prefix = textAt(body, "metadata", "generateName")
  const name = textAt(body, "metadata", "name") || (prefix === "" ? "" : `${prefix}${suffix()}`)
  if (name === "") {
    return yield* KubeStatus.invalid(kind, "", [
      { reason: "FieldValueRequired", field: "metadata.name", message: "Required value: name or generateName is required" }
    ])
  }
  const refusal = createRefusal(namespace, body)
  if (refusal !== null) return yield* refusal
  yield* inNamespace(store, target, name)
  if (store.get(kind.stored, namespace, name) !== undefined) return yield* KubeStatus.alreadyExists(kind, name)
  const time = rfc3339(yield* Clock.currentTimeMillis)
  const uid = randomUUID()
  const complete = { ...body, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: firstMetadata(kind, body, { name, namespace, uid, time }) }
  const admitted = yield* checked(kind, name, put(complete, ["status"], firstStatus(kind, complete, time)), options.strict, () => [])
  const fields = managed ?? afterUpdate(kind, undefined, admitted, writer({ ...target, name, subresource: "" }, options, time))
  return { resource: kind.stored, namespace, name, uid, object: put(admitted, ["metadata", "managedFields"], fields) }
})

/** The change that a patch makes to an existing object. */
const updated = Effect.fnUntraced(function* (target: Target, current: Stored, patch: Patch, options: WriteOptions): Effect.fn.Return<Mutation, KubeStatus> {
  const { kind, name, subresource } = target
  const now = yield* Clock.currentTimeMillis
  const by = writer(target, options, rfc3339(now))
  const before: JsonObject = { ...current.object, apiVersion: apiVersionOf(kind) }
  const { managed, object } = yield* patch(before, by)
  const refusal = updateRefusal({ target, current, object, isPatch: options.patches === true })
  if (refusal !== null) return yield* refusal
  const was = fieldsAt(before, "metadata")
  const next = nextObject(target, before, object)
  const bare = put(put(before, ["metadata", "managedFields"], undefined), ["metadata", "resourceVersion"], undefined)
  const admitted = yield* checked(kind, name, next, options.strict, (one) => [
    ...(subresource === "" ? fixedCauses(kind, before, one) : []),
    ...newFinalizerCauses(was, next)
  ])
  const intended = withGeneration(kind, before, admitted)
  const replaced = at(object, "metadata", "managedFields")
  const fields =
    managed ??
    afterUpdate(
      kind,
      { ...bare, metadata: { ...fieldsAt(bare, "metadata"), managedFields: isList(replaced) ? replaced : (was.managedFields ?? []) } },
      intended,
      by
    )
  if (equal(intended, bare) && equal(fields, was.managedFields)) return { to: "keep", object: current }
  const outcome = {
    resource: current.resource,
    namespace: current.namespace,
    name,
    uid: current.uid,
    object: put(intended, ["metadata", "managedFields"], fields)
  }
  return isReleased(was, intended) ? { to: "remove", object: { ...outcome, version: current.version } } : { to: "put", object: outcome }
})

/** The object that a patch creates if none exists. */
const createdByPatch = Effect.fnUntraced(function* (store: ObjectStore["Service"], target: Target, patch: Patch, options: WriteOptions) {
  const by = writer(target, options, rfc3339(yield* Clock.currentTimeMillis))
  const { managed, object } = yield* patch({ metadata: { name: target.name } }, by)
  const uid = textAt(object, "metadata", "uid")
  if (uid !== "") {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    return yield* KubeStatus.conflict(target.kind, target.name, why)
  }
  return { to: "put", object: yield* prepared(store, target, object, options, managed) } satisfies Mutation
})

const currentOf = (store: ObjectStore["Service"], { kind, name, namespace }: Omit<Target, "subresource">): Effect.Effect<Stored, KubeStatus> =>
  Effect.suspend(() => {
    const current = store.get(kind.stored, namespace, name)
    return current === undefined ? Effect.fail(KubeStatus.notFound(kind, name)) : Effect.succeed(current)
  })

/** A pod that is assigned to a node. */
const boundPod = Effect.fnUntraced(function* (store: ObjectStore["Service"], target: Target, node: string, time: string) {
  const { kind, name } = target
  const current = yield* currentOf(store, target)
  const { object } = current
  const placed = textAt(object, "spec", "nodeName")
  if (placed !== "") return yield* KubeStatus.conflict(kind, name, `pod ${name} is already assigned to node "${placed}"`)
  if (at(object, "metadata", "deletionTimestamp") !== undefined)
    return yield* KubeStatus.conflict(kind, name, `pod ${name} is being deleted, cannot be assigned to a host`)
  const otherConditions = listAt(object, "status", "conditions").filter((one) => textAt(one, "type") !== "PodScheduled")
  const conditions = [...otherConditions, { type: "PodScheduled", status: "True", lastTransitionTime: time }]
  const bound = put(put(object, ["spec", "nodeName"], node), ["status", "conditions"], conditions)
  return { to: "put", object: { ...current, object: bound } } satisfies Mutation
})

/** An empty namespace without the finalizer of its content. It is removed unless other finalizers remain. */
const finalizedNamespace = (store: ObjectStore["Service"], { name, resource, uid }: Stored) =>
  Effect.suspend((): Effect.Effect<Mutation, KubeStatus> => {
    const current = store.get(resource, "", name)
    if (current === undefined || current.uid !== uid) return Effect.fail(KubeStatus.notFound({ group: "", plural: "namespaces", kind: "Namespace" }, name))
    const waits = listAt(current.object, "metadata", "finalizers").length > 0
    const emptied = { ...current, object: put(current.object, ["spec", "finalizers"], []) }
    return Effect.succeed(waits ? { to: "keep", object: current } : { to: "remove", object: emptied })
  })

/** The rules for create, update and delete that the API server itself enforces. */
export class Writes extends Context.Service<
  Writes,
  {
    readonly create: (target: Omit<Target, "name">, body: JsonObject, options: WriteOptions) => Effect.Effect<Stored, KubeStatus>
    /** `createMissing`: the initial object if none exists. */
    readonly update: (
      target: Target,
      patch: Patch,
      options: WriteOptions,
      createMissing?: boolean
    ) => Effect.Effect<{ readonly stored: Stored; readonly created: boolean }, KubeStatus>
    /** Assigns a pod to a node; 409 if it has one already. */
    readonly bind: (target: Target, node: string, time: string, options: WriteOptions) => Effect.Effect<Stored, KubeStatus>
    /** The last step of a namespace's deletion, when it is empty. */
    readonly finalizeNamespace: (namespace: Stored) => Effect.Effect<void, KubeStatus>
    /** `gone`: whether the object was removed. Otherwise it is the updated object (finalizers, grace period). */
    readonly remove: (
      target: Omit<Target, "subresource">,
      options: DeleteOptions
    ) => Effect.Effect<{ readonly stored: Stored; readonly gone: boolean }, KubeStatus>
  }
>()("seatrial/local/Writes") {
  static readonly layer = Layer.effect(
    Writes,
    Effect.map(ObjectStore, (store) =>
      Writes.of({
        create: (target, body, options) =>
          store.write(
            Effect.map(prepared(store, target, body, options), (object): Mutation => ({ to: "put", object })),
            options
          ),
        update: Effect.fnUntraced(function* (target, patch, options, createMissing = false) {
          let created = false
          const decide = Effect.suspend((): Effect.Effect<Mutation, KubeStatus> => {
            const current = store.get(target.kind.stored, target.namespace, target.name)
            if (current !== undefined) return updated(target, current, patch, options)
            if (!createMissing || target.subresource !== "") return Effect.fail(KubeStatus.notFound(target.kind, target.name))
            created = true
            return createdByPatch(store, target, patch, options)
          })
          const stored = yield* store.write(decide, options)
          return { stored, created }
        }),
        bind: (target, node, time, options) => store.write(boundPod(store, target, node, time), options),
        finalizeNamespace: (namespace) => store.write(finalizedNamespace(store, namespace)),
        remove: Effect.fnUntraced(function* (target, options) {
          let gone = false
          const decide = currentOf(store, target).pipe(
            Effect.flatMap((current) => deletion(target, current, options)),
            Effect.tap((mutation) => Effect.sync(() => (gone = mutation.to === "remove")))
          )
          const stored = yield* store.write(decide, options)
          return { stored, gone }
        })
      })
    )
  )
}
