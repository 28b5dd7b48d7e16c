import { Cause, Context, Effect, Layer, type Queue, type Scope, Semaphore } from "effect"
import { ClusterMemory, withVersion } from "./ClusterMemory.ts"
import type { JsonObject } from "./Json.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { makeStatements } from "./objectStatements.ts"

/** An immutable stored object. `object.metadata.resourceVersion` equals `version`. */
export interface Stored {
  /** `GROUP/PLURAL`, shared by all versions of a resource. */
  readonly resource: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: number
  readonly object: JsonObject
}

/** One write, as watches report it. For a removal `after` is the last state with the version of the removal. */
export interface Change {
  readonly version: number
  readonly before: Stored | undefined
  readonly after: Stored
  readonly removed: boolean
}

/** An entry in a watcher's queue after every change up to its version. */
export interface Mark {
  readonly mark: number
}

/** The decision of a write, based on the current state under the lock of the store. */
export type Mutation =
  | { readonly to: "put"; readonly object: Omit<Stored, "version"> }
  | { readonly to: "remove"; readonly object: Stored }
  | { readonly to: "keep"; readonly object: Stored }

const mostObjects = 50_000

const unavailable = () =>
  new KubeStatus({ code: 503, reason: "ServiceUnavailable", message: "the cluster's database is unavailable", details: { retryAfterSeconds: 1 } })

const full = () => new KubeStatus({ code: 403, reason: "Forbidden", message: `the cluster holds at most ${mostObjects} objects` })

/**
 * The objects of the cluster. Postgres stores them and all reads come from memory. One process is the only writer, so
 * that an idle cluster sends no queries. Watches get writes in the order of their versions.
 */
export class ObjectStore extends Context.Service<
  ObjectStore,
  {
    readonly get: (resource: string, namespace: string, name: string) => Stored | undefined
    /** Sorted by namespace and name. Without `namespace`: the objects of all namespaces. */
    readonly list: (resource: string, namespace?: string) => ReadonlyArray<Stored>
    /** The same list at an earlier version; undefined if the version is too old. */
    readonly listAt: (version: number, resource: string, namespace?: string) => ReadonlyArray<Stored> | undefined
    readonly all: () => Iterable<Stored>
    readonly byUid: (uid: string) => Stored | undefined
    /** The version of the latest write. */
    readonly version: () => number
    /** The changes of a resource after a version; undefined if the log no longer contains all of them. */
    readonly since: (version: number, resource: string) => ReadonlyArray<Change> | undefined
    readonly oldest: () => number
    /**
     * All later changes of one resource, or of all resources. The queue ends if its reader is too slow or if the store
     * had to read Postgres again.
     */
    readonly subscribe: (resource?: string) => Effect.Effect<Queue.Queue<Change | Mark, Cause.Done>, never, Scope.Scope>
    /**
     * Runs one write at a time: decides on the current state and stores the result, except in a dry run. Fails with 503
     * if Postgres is unavailable.
     */
    readonly write: <E>(decide: Effect.Effect<Mutation, E>, options?: { readonly dryRun?: boolean }) => Effect.Effect<Stored, E | KubeStatus>
  }
>()("seatrial/local/ObjectStore") {
  static readonly layerSql = Layer.effect(
    ObjectStore,
    Effect.gen(function* () {
      const { readRows, readVersion, remove, upsert } = yield* makeStatements
      const lock = yield* Semaphore.make(1)
      const memory = new ClusterMemory()
      /** Whether memory may differ from the database. */
      let doubtful = false

      const read = Effect.gen(function* () {
        const rows = yield* readRows(undefined)
        const { version } = yield* readVersion(undefined)
        memory.reset(rows, version)
        doubtful = false
      })
      yield* read.pipe(Effect.orDie)

      // Memory follows the database in one uninterruptible step. If it is unknown whether a statement took effect,
      // everything is read again.
      const store = Effect.fnUntraced(function* (mutation: Mutation) {
        const { object, to } = mutation
        if (to === "keep") return object
        const before = memory.get(object.resource, object.namespace, object.name)
        const { version } = yield* to === "remove" ? remove(object.uid) : upsert({ ...object, object: JSON.stringify(object.object) })
        const after = withVersion(object, version)
        memory.apply({ version, before, after, removed: to === "remove" })
        return after
      }, Effect.uninterruptible)

      const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.catchCause(effect, (cause) => {
          doubtful = true
          return Effect.logWarning(`The cluster's database failed: ${Cause.squash(cause)}`).pipe(Effect.andThen(Effect.fail(unavailable())))
        })

      return ObjectStore.of({
        get: (resource, namespace, name) => memory.get(resource, namespace, name),
        list: (resource, namespace) => memory.list(resource, namespace),
        listAt: (version, resource, namespace) => memory.listAt(version, resource, namespace),
        all: () => memory.all(),
        byUid: (uid) => memory.byUid(uid),
        version: () => memory.version,
        oldest: () => memory.oldest,
        since: (version, resource) => memory.since(version, resource),
        subscribe: (resource) => memory.subscribe(resource),
        write: (decide, options) =>
          Effect.gen(function* () {
            if (doubtful) yield* guarded(read)
            const mutation = yield* decide
            if (mutation.to === "put" && memory.size >= mostObjects && memory.byUid(mutation.object.uid) === undefined) return yield* full()
            if (options?.dryRun !== true) return yield* guarded(store(mutation))
            const current = memory.byUid(mutation.object.uid)
            return current === undefined ? { ...mutation.object, version: memory.version } : withVersion(mutation.object, current.version)
          }).pipe(lock.withPermits(1))
      })
    })
  )
}
