import { Effect, Layer, Queue } from "effect"
import { at, isObject, type Json, type JsonObject, listAt, put, textAt } from "./Json.ts"
import { Kinds } from "./Kinds.ts"
import type { KubeStatus } from "./KubeStatus.ts"
import { type Change, ObjectStore, type Stored } from "./ObjectStore.ts"
import { Writes } from "./Writes.ts"
import { definitionFinalizer } from "./writeSteps.ts"

const mostEvents = 1_000

const owners = (object: JsonObject): ReadonlyArray<string> => listAt(object, "metadata", "ownerReferences").map((one) => textAt(one, "uid"))
const deleting = (object: JsonObject): boolean => at(object, "metadata", "deletionTimestamp") !== undefined
const finalizers = (object: JsonObject) => listAt(object, "metadata", "finalizers")

const nonEmpty = (list: ReadonlyArray<Json>) => (list.length === 0 ? undefined : list)

/** An object without a finalizer. */
const unfinalized = (name: string) => (object: JsonObject) =>
  put(object, ["metadata", "finalizers"], nonEmpty(finalizers(object).filter((one) => one !== name)))

/** An object without the owners that no longer exist. */
const disowned = (gone: (uid: string) => boolean) => (object: JsonObject) =>
  put(object, ["metadata", "ownerReferences"], nonEmpty(listAt(object, "metadata", "ownerReferences").filter((one) => !gone(textAt(one, "uid")))))

/** What the garbage collector does to objects. */
interface Collector {
  readonly store: ObjectStore["Service"]
  readonly remove: (object: Stored) => Effect.Effect<unknown, KubeStatus>
  readonly edit: (object: Stored, change: (object: JsonObject) => JsonObject) => Effect.Effect<unknown, KubeStatus>
  readonly finalizeNamespace: (namespace: Stored) => Effect.Effect<void, KubeStatus>
}

const makeCollector = Effect.gen(function* () {
  const store = yield* ObjectStore
  const kinds = yield* Kinds
  const writes = yield* Writes
  const collector: Collector = {
    store,
    remove: ({ name, namespace, resource, uid }) => {
      const kind = kinds.storedAs(resource)
      const options = { dryRun: false, uid, resourceVersion: "", grace: undefined, propagation: "Background" }
      return kind === undefined ? Effect.void : writes.remove({ kind, namespace, name }, options)
    },
    edit: ({ name, namespace, resource, uid }, change) => {
      const kind = kinds.storedAs(resource)
      if (kind === undefined) return Effect.void
      const options = { dryRun: false, strict: false, manager: "kube-controller-manager" }
      return writes.update(
        { kind, namespace, name, subresource: "" },
        (current) => Effect.succeed({ object: textAt(current, "metadata", "uid") === uid ? change(current) : current }),
        options
      )
    },
    finalizeNamespace: writes.finalizeNamespace
  }
  return collector
})

/** Deletes an object if all its owners are gone, and forgets those that are gone otherwise. */
const collectOrphan = Effect.fnUntraced(function* ({ edit, remove, store }: Collector, one: Stored) {
  const uids = owners(one.object)
  if (uids.length === 0 || deleting(one.object)) return
  const gone = (uid: string) => store.byUid(uid) === undefined
  if (uids.every(gone)) yield* remove(one)
  else if (uids.some(gone)) yield* edit(one, disowned(gone))
})

/** What a finalizer waits for. */
type Finalize = (collector: Collector, one: Stored, dependents: ReadonlyArray<Stored>) => Effect.Effect<void, KubeStatus>

const orphanDependents: Finalize = Effect.fnUntraced(function* ({ edit }, one, dependents) {
  const isOwner = (uid: string) => uid === one.uid
  for (const dependent of dependents) yield* edit(dependent, disowned(isOwner))
  yield* edit(one, unfinalized("orphan"))
})

const deleteDependents: Finalize = Effect.fnUntraced(function* ({ edit, remove, store }, one, dependents) {
  for (const dependent of dependents.filter(({ object }) => !deleting(object))) yield* remove(dependent)
  if (dependents.every(({ uid }) => store.byUid(uid) === undefined)) yield* edit(one, unfinalized("foregroundDeletion"))
})

const deleteInstances: Finalize = Effect.fnUntraced(function* ({ edit, remove, store }, one) {
  const resource = `${textAt(one.object, "spec", "group")}/${textAt(one.object, "spec", "names", "plural")}`
  for (const instance of store.list(resource).filter(({ object }) => !deleting(object))) yield* remove(instance)
  if (store.list(resource).length === 0) yield* edit(one, unfinalized(definitionFinalizer))
})

const finalizerWork: ReadonlyArray<readonly [name: string, work: Finalize]> = [
  ["orphan", orphanDependents],
  ["foregroundDeletion", deleteDependents],
  [definitionFinalizer, deleteInstances]
]

const emptyNamespace = Effect.fnUntraced(function* ({ finalizeNamespace, remove, store }: Collector, one: Stored) {
  const content = () => [...store.all()].filter(({ namespace }) => namespace === one.name)
  for (const each of content().filter(({ object }) => !deleting(object))) yield* remove(each)
  if (content().length === 0) yield* finalizeNamespace(one)
})

/** Performs everything that is due for one object. */
const tend = Effect.fnUntraced(function* (collector: Collector, one: Stored, dependents: ReadonlyArray<Stored>) {
  yield* collectOrphan(collector, one)
  if (!deleting(one.object)) return
  const existing = dependents.filter(({ uid }) => collector.store.byUid(uid) !== undefined)
  for (const [name, work] of finalizerWork) if (finalizers(one.object).includes(name)) yield* work(collector, one, existing)
  if (one.resource === "/namespaces") yield* emptyNamespace(collector, one)
})

const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.catchCause(effect, (cause) => Effect.logDebug("Garbage collection will try again", cause))

const sweep = Effect.fnUntraced(function* (collector: Collector) {
  const { remove, store } = collector
  const dependents = new Map<string, Array<Stored>>()
  for (const one of store.all()) for (const uid of owners(one.object)) dependents.set(uid, [...(dependents.get(uid) ?? []), one])
  const due = [...store.all()].filter(({ object }) => deleting(object) || owners(object).some((uid) => store.byUid(uid) === undefined))
  yield* Effect.forEach(due, (one) => quietly(tend(collector, one, dependents.get(one.uid) ?? [])), { discard: true })
  const events = store.list("/events")
  const old = events.toSorted((a, b) => a.version - b.version).slice(0, Math.max(0, events.length - mostEvents))
  yield* Effect.forEach(old, (one) => quietly(remove(one)), { discard: true })
})

/** Whether a change can make work for the garbage collector. */
const isRelevant = ({ after: { object, resource }, removed }: Change): boolean =>
  removed || resource === "/events" || (isObject(object) && (deleting(object) || owners(object).length > 0))

/** Deletes dependents of deleted objects, the content of deleted namespaces and definitions, and the oldest events. */
export const layerGarbageCollector = Layer.effectDiscard(
  Effect.gen(function* () {
    const collector = yield* makeCollector
    yield* Effect.gen(function* () {
      const changes = yield* collector.store.subscribe()
      yield* sweep(collector)
      while (true) {
        const some = yield* Queue.takeAll(changes)
        if (some.some((change) => "after" in change && isRelevant(change))) yield* sweep(collector)
      }
    }).pipe(
      Effect.scoped,
      Effect.catch(() => Effect.void),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
