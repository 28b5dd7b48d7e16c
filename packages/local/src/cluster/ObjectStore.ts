import { Cause, Context, Effect, Layer, Queue, Schema, type Scope, Semaphore } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { type JsonObject, put } from "./Json.ts"
import { KubeStatus } from "./KubeStatus.ts"

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
interface Mark {
  readonly mark: number
}

/** The decision of a write, based on the current state under the lock of the store. */
export type Mutation =
  | { readonly to: "put"; readonly object: Omit<Stored, "version"> }
  | { readonly to: "remove"; readonly object: Stored }
  | { readonly to: "keep"; readonly object: Stored }

/**
 * Maximum number of changes that a watch may lag behind before it must list again, and that may wait for one watcher.
 */
const logLength = 5_000
const watcherQueue = 2_000
const mostObjects = 50_000

const Row = Schema.Struct({
  resource: Schema.String,
  namespace: Schema.String,
  name: Schema.String,
  uid: Schema.String,
  version: Schema.Number,
  object: Schema.JsonObject
})

const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(hashtext('cluster objects'))`
      yield* sql`CREATE SEQUENCE IF NOT EXISTS resource_version START 2`
      yield* sql`
        CREATE TABLE IF NOT EXISTS objects (
          resource text NOT NULL,
          namespace text NOT NULL,
          name text NOT NULL,
          uid text NOT NULL UNIQUE,
          resource_version bigint NOT NULL,
          object jsonb NOT NULL,
          PRIMARY KEY (resource, namespace, name)
        )`
    })
  )
})

const byName = (a: Stored, b: Stored): number => {
  const left = `${a.namespace}/${a.name}`
  const right = `${b.namespace}/${b.name}`
  return left < right ? -1 : left > right ? 1 : 0
}

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
      const sql = yield* SqlClient.SqlClient
      yield* createTables
      const lock = yield* Semaphore.make(1)
      const resources = new Map<string, Map<string, Stored>>()
      const uids = new Map<string, Stored>()
      const watchers = new Map<Queue.Queue<Change | Mark, Cause.Done>, string | undefined>()
      let log: Array<Change> = []
      let newest = 0
      let oldest = 0
      let doubtful = false

      const keep = (stored: Stored) => {
        const objects = resources.get(stored.resource) ?? new Map<string, Stored>()
        resources.set(stored.resource, objects.set(`${stored.namespace}/${stored.name}`, stored))
        uids.set(stored.uid, stored)
      }
      const withVersion = (object: Omit<Stored, "version">, version: number): Stored => ({
        ...object,
        version,
        object: put(object.object, ["metadata", "resourceVersion"], String(version))
      })

      const readRows = SqlSchema.findAll({
        Request: Schema.Void,
        Result: Row,
        execute: () => sql`SELECT resource, namespace, name, uid, resource_version::float8 AS version, object FROM objects`
      })
      const readVersion = SqlSchema.findOne({
        Request: Schema.Void,
        Result: Schema.Struct({ version: Schema.Number }),
        execute: () => sql`SELECT (last_value - (NOT is_called)::int)::float8 AS version FROM resource_version`
      })
      const read = Effect.gen(function* () {
        const rows = yield* readRows(undefined)
        const { version } = yield* readVersion(undefined)
        resources.clear()
        uids.clear()
        for (const row of rows) keep(withVersion(row, row.version))
        log = []
        newest = version
        oldest = version
        doubtful = false
        for (const queue of watchers.keys()) Queue.endUnsafe(queue)
      })
      yield* read.pipe(Effect.orDie)

      const publish = (change: Change) => {
        newest = change.version
        log.push(change)
        if (log.length > logLength * 1.2) {
          oldest = log[log.length - logLength - 1]?.version ?? oldest
          log = log.slice(-logLength)
        }
        for (const [queue, resource] of watchers) {
          if (resource !== undefined && resource !== change.after.resource) continue
          if (!Queue.offerUnsafe(queue, change)) Queue.endUnsafe(queue)
        }
      }

      const written = Schema.Struct({ version: Schema.Number })
      const upsert = SqlSchema.findOne({
        Request: Schema.Struct({ resource: Schema.String, namespace: Schema.String, name: Schema.String, uid: Schema.String, object: Schema.String }),
        Result: written,
        execute: ({ name, namespace, object, resource, uid }) => sql`
          INSERT INTO objects (resource, namespace, name, uid, resource_version, object)
          VALUES (${resource}, ${namespace}, ${name}, ${uid}, nextval('resource_version'), ${object}::text::jsonb)
          ON CONFLICT (resource, namespace, name) DO UPDATE
            SET uid = excluded.uid, resource_version = excluded.resource_version, object = excluded.object
          RETURNING resource_version::float8 AS version`
      })
      const remove = SqlSchema.findOne({
        Request: Schema.String,
        Result: written,
        execute: (uid) => sql`
          WITH gone AS (DELETE FROM objects WHERE uid = ${uid})
          SELECT nextval('resource_version')::float8 AS version`
      })

      // Memory follows the database in one uninterruptible step. If it is unknown whether a statement took effect,
      // everything is read again.
      const store = Effect.fnUntraced(function* (mutation: Mutation) {
        if (mutation.to === "keep") return mutation.object
        const { object } = mutation
        const before = resources.get(object.resource)?.get(`${object.namespace}/${object.name}`)
        const { version } =
          mutation.to === "remove" ? yield* remove(object.uid) : yield* upsert({ ...mutation.object, object: JSON.stringify(mutation.object.object) })
        const after = withVersion(object, version)
        if (mutation.to === "remove") {
          resources.get(object.resource)?.delete(`${object.namespace}/${object.name}`)
          uids.delete(object.uid)
        } else {
          keep(after)
        }
        publish({ version, before, after, removed: mutation.to === "remove" })
        return after
      }, Effect.uninterruptible)

      const unavailable = () =>
        new KubeStatus({ code: 503, reason: "ServiceUnavailable", message: "the cluster's database is unavailable", details: { retryAfterSeconds: 1 } })
      const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.catchCause(effect, (cause) => {
          doubtful = true
          return Effect.logWarning(`The cluster's database failed: ${Cause.squash(cause)}`).pipe(Effect.andThen(Effect.fail(unavailable())))
        })

      const list = (resource: string, namespace?: string) => {
        const all = [...(resources.get(resource)?.values() ?? [])]
        return (namespace === undefined ? all : all.filter((one) => one.namespace === namespace)).sort(byName)
      }

      return ObjectStore.of({
        get: (resource, namespace, name) => resources.get(resource)?.get(`${namespace}/${name}`),
        list,
        listAt: (version, resource, namespace) => {
          if (version >= newest) return list(resource, namespace)
          if (version < oldest) return undefined
          const then = new Map(resources.get(resource))
          for (const { after, before, version: changed } of log.toReversed()) {
            if (changed <= version) break
            if (after.resource !== resource) continue
            const key = `${after.namespace}/${after.name}`
            if (before === undefined) then.delete(key)
            else then.set(key, before)
          }
          return [...then.values()].filter((one) => namespace === undefined || one.namespace === namespace).sort(byName)
        },
        all: () => uids.values(),
        byUid: (uid) => uids.get(uid),
        version: () => newest,
        oldest: () => oldest,
        since: (version, resource) => (version < oldest ? undefined : log.filter((change) => change.version > version && change.after.resource === resource)),
        subscribe: (resource) =>
          Effect.acquireRelease(
            Effect.tap(Queue.dropping<Change | Mark, Cause.Done>(watcherQueue), (queue) => Effect.sync(() => watchers.set(queue, resource))),
            (queue) => Effect.sync(() => watchers.delete(queue)).pipe(Effect.andThen(Queue.shutdown(queue)))
          ),
        write: (decide, options) =>
          Effect.gen(function* () {
            if (doubtful) yield* guarded(read)
            const mutation = yield* decide
            if (mutation.to === "put" && uids.size >= mostObjects && !uids.has(mutation.object.uid)) {
              return yield* new KubeStatus({ code: 403, reason: "Forbidden", message: `the cluster holds at most ${mostObjects} objects` })
            }
            if (options?.dryRun === true) {
              const current = uids.get(mutation.object.uid)
              return current === undefined ? { ...mutation.object, version: newest } : withVersion(mutation.object, current.version)
            }
            return yield* guarded(store(mutation))
          }).pipe(lock.withPermits(1))
      })
    })
  )
}
