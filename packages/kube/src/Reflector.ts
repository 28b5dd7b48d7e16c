import { type Cause, Deferred, Effect, Latch, Option, type Scope, Stream } from "effect"
import { KubeClient } from "./KubeClient.ts"
import type { KubeError } from "./KubeError.ts"
import { type KubeObject, keyOf, type Resource, type Selection, toKey } from "./Resource.ts"
import type { Unreadable, WatchEvent } from "./WatchEvent.ts"

/**
 * The last known objects of one kind, kept by a list-and-watch for as long as the scope that made it. Reads never wait and never ask the server. An object that does not
 * match its schema any more stays as it was last known until it does again or is gone; one that never did is not known.
 */
export interface Reflector<A extends KubeObject> {
  /** What was last known; none before `synced` too. */
  readonly get: (name: string, namespace?: string) => Effect.Effect<Option.Option<A>>
  readonly list: () => Effect.Effect<ReadonlyArray<A>>
  /** The objects whose label has that value, without a scan where the label is among `indexLabels`. */
  readonly listByLabel: (label: string, value: string) => Effect.Effect<ReadonlyArray<A>>
  /** The objects that one of `indexBy` gives that value, without a scan; none of an index that there is not. */
  readonly listBy: (index: string, value: string) => Effect.Effect<ReadonlyArray<A>>
  /**
   * Keys (see `keyOf`) of objects that appeared, changed or went: first every one known, then each as it changes, also those that went while nobody could
   * watch. A key that changes many times before it is taken comes once, so a slow consumer holds at most one entry a key. Fails as the watch fails.
   */
  readonly changes: Stream.Stream<string, KubeError>
  /** Ends once the first list is known; fails as the watch fails. */
  readonly synced: Effect.Effect<void, KubeError>
}

export interface ReflectorOptions<A> {
  /** What is kept of each object, from what the server sent: name, uid and version have to stay. By default all but `managedFields`. */
  readonly keep?: (object: A) => A
  /** Labels by which `listByLabel` looks up without a scan. */
  readonly indexLabels?: ReadonlyArray<string>
  /** Further indexes for `listBy`, by name: the value that an object is found by, of the object as it was sent; undefined: by none. */
  readonly indexBy?: Readonly<Record<string, (object: A) => string | undefined>>
  /** Told of each object as it is known from now on, before `changes` tells its key; undefined: it went. */
  readonly onChange?: (name: string, object: A | undefined) => void
  /** Told of each object that went, as it was last known, before `changes` tells its key; also of one that another of the same name replaced unseen. */
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
  /** `values`: what the object of each key is found by, so that nobody has to read it again from an object that goes. */
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

  /** Whether the very object is known, and not an earlier one of its name. */
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
        // What is there but cannot be read stays as it was last known: it is no deletion, on which somebody would make it anew or let go of what it stands for.
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
          const made: Subscriber = { dirty: new Set(objects.keys()), latch: Latch.makeUnsafe(true) }
          subscribers.add(made)
          return made
        }),
        (made) => Effect.sync(() => subscribers.delete(made))
      )
      return Stream.fromPull(
        Effect.succeed(
          Effect.gen(function* () {
            while (true) {
              yield* subscriber.latch.await
              const [first, ...others] = subscriber.dirty
              subscriber.dirty.clear()
              if (first !== undefined) return [first, ...others] as const
              if (failure !== undefined) return yield* Effect.failCause(failure)
              subscriber.latch.closeUnsafe()
            }
          })
        )
      )
    })
  )

  const found = ({ keys }: ReturnType<typeof makeIndex>, value: string) => [...(keys.get(value) ?? [])].flatMap((key) => objects.get(key) ?? [])
  const reflector: Reflector<A> = {
    get: (name, namespace) => Effect.sync(() => Option.fromNullishOr(objects.get(toKey(name, namespace)))),
    list: () => Effect.sync(() => [...objects.values()]),
    listByLabel: (label, value) =>
      Effect.sync(() => {
        const index = byLabel.get(label)
        return index === undefined ? [...objects.values()].filter((object) => labelled(label)(object) === value) : found(index, value)
      }),
    listBy: (name, value) =>
      Effect.sync(() => {
        const index = byName.get(name)
        return index === undefined ? [] : found(index, value)
      }),
    changes,
    synced: Deferred.await(synced)
  }
  return reflector
})

export const Reflector = { make }
