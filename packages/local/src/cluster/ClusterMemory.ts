import { type Cause, Effect, Queue, type Scope } from "effect"
import { put } from "./Json.ts"
import type { Change, Mark, Stored } from "./ObjectStore.ts"

/**
 * Maximum number of changes that a watch may lag behind before it must list again, and that may wait for one watcher.
 */
const logLength = 5_000
const watcherQueue = 2_000

type WatcherQueue = Queue.Queue<Change | Mark, Cause.Done>

const byName = (a: Stored, b: Stored): number => {
  const left = `${a.namespace}/${a.name}`
  const right = `${b.namespace}/${b.name}`
  return left < right ? -1 : left > right ? 1 : 0
}

const keyOf = ({ name, namespace }: Pick<Stored, "name" | "namespace">) => `${namespace}/${name}`

export const withVersion = (object: Omit<Stored, "version">, version: number): Stored => ({
  ...object,
  version,
  object: put(object.object, ["metadata", "resourceVersion"], String(version))
})

/** The objects of the cluster in memory, the latest changes, and those who watch them. */
export class ClusterMemory {
  readonly #resources = new Map<string, Map<string, Stored>>()
  readonly #uids = new Map<string, Stored>()
  readonly #watchers = new Map<WatcherQueue, string | undefined>()
  #log: Array<Change> = []
  #newest = 0
  #oldest = 0

  get version(): number {
    return this.#newest
  }

  /** The version before the first change of the log. */
  get oldest(): number {
    return this.#oldest
  }

  get size(): number {
    return this.#uids.size
  }

  get(resource: string, namespace: string, name: string): Stored | undefined {
    return this.#resources.get(resource)?.get(keyOf({ namespace, name }))
  }

  byUid(uid: string): Stored | undefined {
    return this.#uids.get(uid)
  }

  all(): Iterable<Stored> {
    return this.#uids.values()
  }

  list(resource: string, namespace?: string): ReadonlyArray<Stored> {
    const all = [...(this.#resources.get(resource)?.values() ?? [])]
    return (namespace === undefined ? all : all.filter((one) => one.namespace === namespace)).sort(byName)
  }

  /** The list at an earlier version; undefined if the log no longer reaches back to it. */
  listAt(version: number, resource: string, namespace?: string): ReadonlyArray<Stored> | undefined {
    if (version >= this.#newest) return this.list(resource, namespace)
    if (version < this.#oldest) return undefined
    const then = new Map(this.#resources.get(resource))
    for (const { after, before, version: changed } of this.#log.toReversed()) {
      if (changed <= version) break
      if (after.resource !== resource) continue
      if (before === undefined) then.delete(keyOf(after))
      else then.set(keyOf(after), before)
    }
    return [...then.values()].filter((one) => namespace === undefined || one.namespace === namespace).sort(byName)
  }

  since(version: number, resource: string): ReadonlyArray<Change> | undefined {
    return version < this.#oldest ? undefined : this.#log.filter((change) => change.version > version && change.after.resource === resource)
  }

  subscribe(resource?: string): Effect.Effect<WatcherQueue, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.tap(Queue.dropping<Change | Mark, Cause.Done>(watcherQueue), (queue) => Effect.sync(() => this.#watchers.set(queue, resource))),
      (queue) => Effect.sync(() => this.#watchers.delete(queue)).pipe(Effect.andThen(Queue.shutdown(queue)))
    )
  }

  /** Replaces everything by the content of the database. Watchers must list again. */
  reset(objects: ReadonlyArray<Stored>, version: number): void {
    this.#resources.clear()
    this.#uids.clear()
    for (const object of objects) this.#keep(withVersion(object, object.version))
    this.#log = []
    this.#newest = version
    this.#oldest = version
    for (const queue of this.#watchers.keys()) Queue.endUnsafe(queue)
  }

  /** Applies a write and reports it to watchers. */
  apply(change: Change): void {
    const { after } = change
    if (change.removed) {
      this.#resources.get(after.resource)?.delete(keyOf(after))
      this.#uids.delete(after.uid)
    } else this.#keep(after)
    this.#record(change)
    for (const [queue, resource] of this.#watchers) {
      if (resource !== undefined && resource !== after.resource) continue
      if (!Queue.offerUnsafe(queue, change)) Queue.endUnsafe(queue)
    }
  }

  #keep(stored: Stored): void {
    const objects = this.#resources.get(stored.resource) ?? new Map<string, Stored>()
    this.#resources.set(stored.resource, objects.set(keyOf(stored), stored))
    this.#uids.set(stored.uid, stored)
  }

  #record(change: Change): void {
    this.#newest = change.version
    this.#log.push(change)
    if (this.#log.length <= logLength * 1.2) return
    this.#oldest = this.#log[this.#log.length - logLength - 1]?.version ?? this.#oldest
    this.#log = this.#log.slice(-logLength)
  }
}
