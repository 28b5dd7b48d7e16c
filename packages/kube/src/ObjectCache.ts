import { Latch } from "effect"
import type { ReflectorOptions } from "./Reflector.ts"
import { type KubeObject, keyOf } from "./Resource.ts"
import type { Unreadable } from "./WatchEvent.ts"

/** The keys by a value that is computed from each object. */
class ObjectIndex<A> {
  readonly #valueOf: (object: A) => string | undefined
  readonly #keys = new Map<string, Set<string>>()
  /** The value of each key, because it cannot be computed from a deleted object. */
  readonly #values = new Map<string, string>()

  constructor(valueOf: (object: A) => string | undefined) {
    this.#valueOf = valueOf
  }

  keysOf(value: string): ReadonlyArray<string> {
    return [...(this.#keys.get(value) ?? [])]
  }

  /** Enters a new state of an object; undefined: deleted. */
  enter(key: string, object: A | undefined): void {
    const before = this.#values.get(key)
    const value = object === undefined ? undefined : this.#valueOf(object)
    if (before === value) return
    if (before !== undefined) this.#leave(key, before)
    if (value === undefined) this.#values.delete(key)
    else this.#join(key, value)
  }

  #leave(key: string, value: string): void {
    const sharing = this.#keys.get(value)
    sharing?.delete(key)
    if (sharing?.size === 0) this.#keys.delete(value)
  }

  #join(key: string, value: string): void {
    this.#values.set(key, value)
    const sharing = this.#keys.get(value)
    if (sharing === undefined) this.#keys.set(value, new Set([key]))
    else sharing.add(key)
  }
}

/** The keys that one consumer has not received yet. */
interface Subscriber {
  readonly dirty: Set<string>
  readonly latch: Latch.Latch
}

const sameObject = (one: KubeObject, other: KubeObject) =>
  one.metadata.resourceVersion !== undefined && one.metadata.uid === other.metadata.uid && one.metadata.resourceVersion === other.metadata.resourceVersion

const labelOf = (label: string) => (object: KubeObject) => object.metadata.labels?.[label]

/** The objects of a reflector, its indexes, and the subscribers of its changes. */
export class ObjectCache<A extends KubeObject> {
  readonly #objects = new Map<string, A>()
  readonly #options: ReflectorOptions<A>
  readonly #byLabel: ReadonlyMap<string, ObjectIndex<A>>
  readonly #byName: ReadonlyMap<string, ObjectIndex<A>>
  readonly #subscribers = new Set<Subscriber>()

  constructor(options: ReflectorOptions<A>) {
    this.#options = options
    this.#byLabel = new Map((options.indexLabels ?? []).map((label) => [label, new ObjectIndex<A>(labelOf(label))]))
    this.#byName = new Map(Object.entries(options.indexBy ?? {}).map(([name, valueOf]) => [name, new ObjectIndex(valueOf)]))
  }

  get(key: string): A | undefined {
    return this.#objects.get(key)
  }

  list(): ReadonlyArray<A> {
    return [...this.#objects.values()]
  }

  listByLabel(label: string, value: string): ReadonlyArray<A> {
    const index = this.#byLabel.get(label)
    return index === undefined ? this.list().filter((object) => labelOf(label)(object) === value) : this.#listBy(index, value)
  }

  listBy(name: string, value: string): ReadonlyArray<A> {
    const index = this.#byName.get(name)
    return index === undefined ? [] : this.#listBy(index, value)
  }

  #listBy(index: ObjectIndex<A>, value: string): ReadonlyArray<A> {
    return index.keysOf(value).flatMap((key) => this.#objects.get(key) ?? [])
  }

  /** Whether this object is in the cache, not an earlier one with the same name. */
  isKnown({ key, uid }: Unreadable): boolean {
    return this.#objects.get(key)?.metadata.uid === uid
  }

  put(sent: A): void {
    const key = keyOf(sent)
    const before = this.#objects.get(key)
    if (before !== undefined && sameObject(before, sent)) return
    const object = this.#options.keep?.(sent) ?? sent
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) this.#options.onGone?.(before)
    this.#objects.set(key, object)
    this.#enter(key, sent)
    this.#options.onChange?.(object.metadata.name, object)
    this.#wake(key)
  }

  /** Removes an object. `last`: its last state, if the server sent it. */
  drop(key: string, last?: A): void {
    const before = this.#objects.get(key)
    if (before === undefined) return
    this.#enter(key, undefined)
    this.#objects.delete(key)
    this.#options.onChange?.(before.metadata.name, undefined)
    this.#options.onGone?.(last !== undefined && last.metadata.uid === before.metadata.uid ? last : before)
    this.#wake(key)
  }

  /**
   * Replaces everything by a complete list. An unreadable object keeps its last valid state. Treating it as deleted
   * would make controllers recreate it or release what it represents.
   */
  replace(items: ReadonlyArray<A>, unreadable: ReadonlyArray<Unreadable>): void {
    const present = new Set([...items.map(keyOf), ...unreadable.filter((one) => this.isKnown(one)).map(({ key }) => key)])
    for (const key of [...this.#objects.keys()]) if (!present.has(key)) this.drop(key)
    for (const item of items) this.put(item)
  }

  /** Registers a consumer of changes. It begins with all known keys. */
  subscribe(): Subscriber {
    const subscriber: Subscriber = { dirty: new Set(this.#objects.keys()), latch: Latch.makeUnsafe(true) }
    this.#subscribers.add(subscriber)
    return subscriber
  }

  unsubscribe(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber)
  }

  /** Lets all consumers look, for instance at a failure. */
  wakeAll(): void {
    for (const { latch } of this.#subscribers) latch.openUnsafe()
  }

  #wake(key: string): void {
    for (const { dirty, latch } of this.#subscribers) {
      dirty.add(key)
      latch.openUnsafe()
    }
  }

  #enter(key: string, object: A | undefined): void {
    for (const index of this.#byLabel.values()) index.enter(key, object)
    for (const index of this.#byName.values()) index.enter(key, object)
  }
}
