import { Effect, Layer, Queue } from "effect"
import { at, isObject, type Json, type JsonObject, listAt, put, textAt } from "./Json.ts"
import { Kinds } from "./Kinds.ts"
import { ObjectStore, type Stored } from "./ObjectStore.ts"
import { Writes } from "./Writes.ts"
import { definitionFinalizer } from "./writeSteps.ts"

const mostEvents = 1_000

const owners = (object: JsonObject): ReadonlyArray<string> => listAt(object, "metadata", "ownerReferences").map((one) => textAt(one, "uid"))
const deleting = (object: JsonObject): boolean => at(object, "metadata", "deletionTimestamp") !== undefined
const finalizers = (object: JsonObject) => listAt(object, "metadata", "finalizers")

/** Deletes dependents of deleted objects, the content of deleted namespaces and definitions, and the oldest events. */
export const layerGarbageCollector = Layer.effectDiscard(
  Effect.gen(function* () {
    const store = yield* ObjectStore
    const kinds = yield* Kinds
    const writes = yield* Writes

    const remove = ({ name, namespace, resource, uid }: Stored) => {
      const kind = kinds.storedAs(resource)
      const options = { dryRun: false, uid, resourceVersion: "", grace: undefined, propagation: "Background" }
      return kind === undefined ? Effect.void : writes.remove({ kind, namespace, name }, options)
    }
    const edit = ({ name, namespace, resource, uid }: Stored, change: (object: JsonObject) => JsonObject) => {
      const kind = kinds.storedAs(resource)
      if (kind === undefined) return Effect.void
      const options = { dryRun: false, strict: false, manager: "kube-controller-manager" }
      return writes.update(
        { kind, namespace, name, subresource: "" },
        (current) => Effect.succeed({ object: textAt(current, "metadata", "uid") === uid ? change(current) : current }),
        options
      )
    }
    const nonEmpty = (list: ReadonlyArray<Json>) => (list.length === 0 ? undefined : list)
    const unfinalized = (name: string) => (object: JsonObject) =>
      put(object, ["metadata", "finalizers"], nonEmpty(finalizers(object).filter((one) => one !== name)))
    const disowned = (gone: (uid: string) => boolean) => (object: JsonObject) =>
      put(object, ["metadata", "ownerReferences"], nonEmpty(listAt(object, "metadata", "ownerReferences").filter((one) => !gone(textAt(one, "uid")))))

    /** Performs everything that is due for one object. */
    const tend = Effect.fnUntraced(function* (one: Stored, dependents: ReadonlyMap<string, ReadonlyArray<Stored>>) {
      const uids = owners(one.object)
      if (uids.length > 0 && !deleting(one.object)) {
        const gone = (uid: string) => store.byUid(uid) === undefined
        if (uids.every(gone)) yield* remove(one)
        else if (uids.some(gone)) yield* edit(one, disowned(gone))
      }
      if (!deleting(one.object)) return
      const mine = (dependents.get(one.uid) ?? []).filter(({ uid }) => store.byUid(uid) !== undefined)
      if (finalizers(one.object).includes("orphan")) {
        for (const dependent of mine)
          yield* edit(
            dependent,
            disowned((uid) => uid === one.uid)
          )
        yield* edit(one, unfinalized("orphan"))
      }
      if (finalizers(one.object).includes("foregroundDeletion")) {
        for (const dependent of mine.filter(({ object }) => !deleting(object))) yield* remove(dependent)
        if (mine.every(({ uid }) => store.byUid(uid) === undefined)) yield* edit(one, unfinalized("foregroundDeletion"))
      }
      if (finalizers(one.object).includes(definitionFinalizer)) {
        const resource = `${textAt(one.object, "spec", "group")}/${textAt(one.object, "spec", "names", "plural")}`
        for (const instance of store.list(resource).filter(({ object }) => !deleting(object))) yield* remove(instance)
        if (store.list(resource).length === 0) yield* edit(one, unfinalized(definitionFinalizer))
      }
      if (one.resource === "/namespaces") {
        const content = [...store.all()].filter(({ namespace }) => namespace === one.name)
        for (const each of content.filter(({ object }) => !deleting(object))) yield* remove(each)
        if (![...store.all()].some(({ namespace }) => namespace === one.name)) {
          yield* writes.finalizeNamespace(one)
        }
      }
    })

    const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.catchCause(effect, (cause) => Effect.logDebug("Garbage collection will try again", cause))

    const sweep = Effect.gen(function* () {
      const dependents = new Map<string, Array<Stored>>()
      for (const one of store.all()) for (const uid of owners(one.object)) dependents.set(uid, [...(dependents.get(uid) ?? []), one])
      const due = [...store.all()].filter(({ object }) => deleting(object) || owners(object).some((uid) => store.byUid(uid) === undefined))
      yield* Effect.forEach(due, (one) => quietly(tend(one, dependents)), { discard: true })
      const events = store.list("/events")
      const old = events.toSorted((a, b) => a.version - b.version).slice(0, Math.max(0, events.length - mostEvents))
      yield* Effect.forEach(old, (one) => quietly(remove(one)), { discard: true })
    })

    yield* Effect.gen(function* () {
      const changes = yield* store.subscribe()
      yield* sweep
      while (true) {
        const some = yield* Queue.takeAll(changes)
        const matters = some.some(
          (change) =>
            "after" in change &&
            (change.removed ||
              change.after.resource === "/events" ||
              (isObject(change.after.object) && (deleting(change.after.object) || owners(change.after.object).length > 0)))
        )
        if (matters) yield* sweep
      }
    }).pipe(
      Effect.scoped,
      Effect.catch(() => Effect.void),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
