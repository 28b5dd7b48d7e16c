import { type Cause, Deferred, Effect, Option, type Scope, Stream } from "effect"
import { KubeClient } from "./KubeClient.ts"
import type { KubeError } from "./KubeError.ts"
import { ObjectCache } from "./ObjectCache.ts"
import { type KubeObject, keyOf, type Resource, type Selection, toKey } from "./Resource.ts"
import type { WatchEvent } from "./WatchEvent.ts"

/**
 * A cache of the objects of one kind, maintained by a list-and-watch for the lifetime of its scope. Reads never wait
 * and never call the server. If an object no longer matches its schema, its last valid state stays in the cache until
 * it matches again or is deleted. An object that never matched is not in the cache.
 */
export interface Reflector<A extends KubeObject> {
  /** The cached object; none before `synced`. */
  readonly get: (name: string, namespace?: string) => Effect.Effect<Option.Option<A>>
  readonly list: () => Effect.Effect<ReadonlyArray<A>>
  /** The objects whose label has this value. Without a scan if the label is in `indexLabels`. */
  readonly listByLabel: (label: string, value: string) => Effect.Effect<ReadonlyArray<A>>
  /** The objects with this value in an index of `indexBy`, without a scan; empty for an unknown index. */
  readonly listBy: (index: string, value: string) => Effect.Effect<ReadonlyArray<A>>
  /**
   * Keys (see `keyOf`) of added, changed and deleted objects: first all known ones, then each as it changes, including
   * deletions during a gap of the watch. A key that changes several times before it is consumed appears once, so a slow
   * consumer holds at most one entry per key. Fails when the watch fails.
   */
  readonly changes: Stream.Stream<string, KubeError>
  /** Completes when the first list is in the cache. Fails when the watch fails. */
  readonly synced: Effect.Effect<void, KubeError>
}

export interface ReflectorOptions<A> {
  /**
   * The part of each object that the cache keeps. Name, uid and version must stay. Default: everything except
   * `managedFields`.
   */
  readonly keep?: (object: A) => A
  /** Labels that `listByLabel` finds without a scan. */
  readonly indexLabels?: ReadonlyArray<string>
  /**
   * Further indexes for `listBy`, by name: a function from the object as sent by the server to its index value;
   * undefined: not in the index.
   */
  readonly indexBy?: Readonly<Record<string, (object: A) => string | undefined>>
  /** Called with each new state of an object before `changes` emits its key; undefined: deleted. */
  readonly onChange?: (name: string, object: A | undefined) => void
  /**
   * Called with the last state of each deleted object before `changes` emits its key, including an object that was
   * replaced by another one of the same name during a gap.
   */
  readonly onGone?: (object: A) => void
}

/** Takes over what a watch reports. */
const takeEvent = <A extends KubeObject>(cache: ObjectCache<A>, event: WatchEvent<A>, onSynced: () => void): void => {
  switch (event._tag) {
    case "Changed":
      cache.put(event.object)
      break
    case "Removed":
      cache.drop(keyOf(event.object), event.object)
      break
    case "RemovedUnreadable":
      if (cache.isKnown(event)) cache.drop(event.key)
      break
    case "Synced":
      cache.replace(event.items, event.unreadable ?? [])
      onSynced()
  }
}

/** The keys of a cache as they change. `failure`: why the watch has ended, if it has. */
const changesOf = <A extends KubeObject>(cache: ObjectCache<A>, failure: () => Cause.Cause<KubeError> | undefined): Stream.Stream<string, KubeError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { dirty, latch } = yield* Effect.acquireRelease(
        Effect.sync(() => cache.subscribe()),
        (subscriber) => Effect.sync(() => cache.unsubscribe(subscriber))
      )
      return Stream.fromPull(
        Effect.succeed(
          Effect.gen(function* () {
            while (true) {
              yield* latch.await
              const [first, ...rest] = dirty
              dirty.clear()
              if (first !== undefined) return [first, ...rest] as const
              const cause = failure()
              if (cause !== undefined) return yield* Effect.failCause(cause)
              latch.closeUnsafe()
            }
          })
        )
      )
    })
  )

const make = Effect.fnUntraced(function* <A extends KubeObject>(
  resource: Resource<A>,
  selection: Selection,
  options: ReflectorOptions<A> = {}
): Effect.fn.Return<Reflector<A>, never, KubeClient | Scope.Scope> {
  const client = yield* KubeClient
  const cache = new ObjectCache(options)
  const synced = yield* Deferred.make<void, KubeError>()
  let failure: Cause.Cause<KubeError> | undefined

  yield* client.watch(resource, selection).pipe(
    Stream.runForEachArray((events) =>
      Effect.sync(() => {
        for (const event of events) takeEvent(cache, event, () => Deferred.doneUnsafe(synced, Effect.void))
      })
    ),
    Effect.onError((cause) =>
      Effect.sync(() => {
        failure = cause
        Deferred.doneUnsafe(synced, Effect.failCause(cause))
        cache.wakeAll()
      })
    ),
    Effect.ignore,
    Effect.forkScoped
  )

  const reflector: Reflector<A> = {
    get: (name, namespace) => Effect.sync(() => Option.fromNullishOr(cache.get(toKey(name, namespace)))),
    list: () => Effect.sync(() => cache.list()),
    listByLabel: (label, value) => Effect.sync(() => cache.listByLabel(label, value)),
    listBy: (name, value) => Effect.sync(() => cache.listBy(name, value)),
    changes: changesOf(cache, () => failure),
    synced: Deferred.await(synced)
  }
  return reflector
})

export const Reflector = { make }
