import { type Cause, Deferred, Effect, Latch, Option, type Scope, Stream } from "effect"
import { KubeClient } from "./KubeClient.ts"
import type { KubeError } from "./KubeError.ts"
import { type KubeObject, keyOf, type Resource, type Selection, toKey } from "./Resource.ts"
import type { Unreadable, WatchEvent } from "./WatchEvent.ts"

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

interface Subscriber {
  readonly dirty: Set<string>
  readonly latch: Latch.Latch
}

const sameObject = (one: KubeObject, other: KubeObject) =>
  one.metadata.resourceVersion !== undefined && one.metadata.uid === other.metadata.uid && one.metadata.resourceVersion === other.metadata.resourceVersion

const make = Effect.fnUntraced(function* <A extends KubeObject>(
  resource: Resource<A>,
  selection: Selection,
  options?: ReflectorOptions<A>
): Effect.fn.Return<Reflector<A>, never, KubeClient | Scope.Scope> {
  const client = yield* KubeClient
  const objects = new Map<string, A>()
  const labelled = (label: string) => (object: A) => object.metadata.labels?.[label]
  /** `values`: the index value of each key, because the value cannot be computed from a deleted object. */
  const makeIndex = (valueOf: (object: A) => string | undefined) => ({ valueOf, keys: new Map<string, Set<string>>(), values: new Map<string, string>() })
  const byLabel = new Map((options?.indexLabels ?? []).map((label) => [label, makeIndex(labelled(label))]))
  const byName = new Map(Object.entries(options?.indexBy ?? {}).map(([name, valueOf]) => [name, makeIndex(valueOf)]))
  const indexes = [...byLabel.values(), ...byName.values()]
  const subscribers = new Set<Subscriber>()
  const synced = yield* Deferred.make<void, KubeError>()
  let failure: Cause.Cause<KubeError> | undefined

  const wake = (key: string) => {
    for (const subscriber of subscribers) {
      subscriber.dirty.add(key)
      subscriber.latch.openUnsafe()
    }
  }

  const enter = (key: string, object: A | undefined) => {
    for (const { keys, valueOf, values } of indexes) {
      const before = values.get(key)
      const value = object === undefined ? undefined : valueOf(object)
      if (before === value) continue
      const sharing = before === undefined ? undefined : keys.get(before)
      sharing?.delete(key)
      if (before !== undefined && sharing?.size === 0) keys.delete(before)
      if (value === undefined) {
        values.delete(key)
        continue
      }
      values.set(key, value)
      const known = keys.get(value)
      if (known === undefined) keys.set(value, new Set([key]))
      else known.add(key)
    }
  }

  const put = (sent: A) => {
    const key = keyOf(sent)
    const before = objects.get(key)
    if (before !== undefined && sameObject(before, sent)) return
    const object = options?.keep?.(sent) ?? sent
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) options?.onGone?.(before)
    objects.set(key, object)
    enter(key, sent)
    options?.onChange?.(object.metadata.name, object)
    wake(key)
  }

  const drop = (key: string, last?: A) => {
    const before = objects.get(key)
    if (before === undefined) return
    enter(key, undefined)
    objects.delete(key)
    options?.onChange?.(before.metadata.name, undefined)
    options?.onGone?.(last !== undefined && last.metadata.uid === before.metadata.uid ? last : before)
    wake(key)
  }

  /** Whether this object is in the cache, not an earlier one with the same name. */
  const isKnown = ({ key, uid }: Unreadable) => objects.get(key)?.metadata.uid === uid

  const take = (event: WatchEvent<A>) => {
    switch (event._tag) {
      case "Changed":
        return put(event.object)
      case "Removed":
        return drop(keyOf(event.object), event.object)
      case "RemovedUnreadable":
        return isKnown(event) ? drop(event.key) : undefined
      case "Synced": {
        // An unreadable object keeps its last valid state. Treating it as deleted would make controllers recreate it or
        // release what it represents.
        const present = new Set([...event.items.map(keyOf), ...(event.unreadable ?? []).filter(isKnown).map(({ key }) => key)])
        for (const key of [...objects.keys()]) if (!present.has(key)) drop(key)
        for (const item of event.items) put(item)
        Deferred.doneUnsafe(synced, Effect.void)
      }
    }
  }

  yield* client.watch(resource, selection).pipe(
    Stream.runForEachArray((events) => Effect.sync(() => events.forEach(take))),
    Effect.onError((cause) =>
      Effect.sync(() => {
        failure = cause
        Deferred.doneUnsafe(synced, Effect.failCause(cause))
        for (const subscriber of subscribers) subscriber.latch.openUnsafe()
      })
    ),
    Effect.ignore,
    Effect.forkScoped
  )

  const changes = Stream.unwrap(
    Effect.gen(function* () {
      const subscriber = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const subscriber: Subscriber = { dirty: new Set(objects.keys()), latch: Latch.makeUnsafe(true) }
          subscribers.add(subscriber)
          return subscriber
        }),
        (subscriber) => Effect.sync(() => subscribers.delete(subscriber))
      )
      return Stream.fromPull(
        Effect.succeed(
          Effect.gen(function* () {
            while (true) {
              yield* subscriber.latch.await
              const [first, ...rest] = subscriber.dirty
              subscriber.dirty.clear()
              if (first !== undefined) return [first, ...rest] as const
              if (failure !== undefined) return yield* Effect.failCause(failure)
              subscriber.latch.closeUnsafe()
            }
          })
        )
      )
    })
  )

  const objectsByValue = ({ keys }: ReturnType<typeof makeIndex>, value: string) => [...(keys.get(value) ?? [])].flatMap((key) => objects.get(key) ?? [])
  const reflector: Reflector<A> = {
    get: (name, namespace) => Effect.sync(() => Option.fromNullishOr(objects.get(toKey(name, namespace)))),
    list: () => Effect.sync(() => [...objects.values()]),
    listByLabel: (label, value) =>
      Effect.sync(() => {
        const index = byLabel.get(label)
        return index === undefined ? [...objects.values()].filter((object) => labelled(label)(object) === value) : objectsByValue(index, value)
      }),
    listBy: (name, value) =>
      Effect.sync(() => {
        const index = byName.get(name)
        return index === undefined ? [] : objectsByValue(index, value)
      }),
    changes,
    synced: Deferred.await(synced)
  }
  return reflector
})

export const Reflector = { make }
