import { KubeClient, KubeError, type KubeObject, type Resource, type Selection, type WatchEvent } from "@seatrial/kube"
import { Effect, Equal, Option, Predicate, Queue, Schema, Stream } from "effect"

type Json = Record<PropertyKey, unknown>

const decode = <A extends KubeObject>(resource: Resource<A>, json: Json): A => Schema.decodeUnknownSync(resource.schema)(json)
const metaOf = (json: Json): Json => (Predicate.isObject(json.metadata) ? json.metadata : {})

/** Applies a JSON merge patch to objects. */
const merged = (before: Json, patch: unknown): Json => {
  if (!Predicate.isObject(patch)) return before
  const next: Json = { ...before }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete next[key]
    else next[key] = Predicate.isObject(value) ? merged(Predicate.isObject(next[key]) ? next[key] : {}, value) : value
  }
  return next
}

/**
 * An API server in memory: watches, server-side apply as a merge of the top level, uids, versions, the status
 * subresource. `onWrite` runs after every write that changed something.
 */
export const makeMemoryKube = () => {
  const objects = new Map<string, { readonly kind: string; json: Json }>()
  const watchers = new Set<{ readonly kind: string; readonly queue: Queue.Queue<Json | { readonly gone: Json }> }>()
  const log: Array<string> = []
  let version = 0
  let listeners: ReadonlyArray<(write: string) => void> = []
  /** Called before a write returns; may never end. */
  let gate: (write: string) => Effect.Effect<void> = () => Effect.void
  let logOf = (pod: string) => `${pod} said this last with hf_abcdefghijkl`
  /** The error for a creation of that kind; null for none. */
  let refusal: (kind: string) => KubeError | null = () => null

  const keyOf = (kind: string, name: string) => `${kind}/${name}`
  /** Namespaces whose lists fail. */
  const unlisted = new Set<string>()
  /** Changes that no watch has shown yet, by kind. */
  const late = new Map<string, Array<Json | { readonly gone: Json }>>()
  const tell = (kind: string, message: Json | { readonly gone: Json }) => {
    const waiting = late.get(kind)
    if (waiting !== undefined) return void waiting.push(message)
    for (const watcher of watchers) if (watcher.kind === kind) Queue.offerUnsafe(watcher.queue, message)
  }

  const put = (kind: string, name: string, change: (json: Json) => Json, write: string): Json => {
    const before = objects.get(keyOf(kind, name))?.json
    const start: Json = before ?? { kind, metadata: { name, uid: `uid-${++version}`, generation: 1, creationTimestamp: new Date(0).toISOString() } }
    const changed = change(start)
    if (before !== undefined && Equal.equals(before, changed)) return before
    const json = { ...changed, metadata: { ...metaOf(changed), resourceVersion: String(++version) } }
    objects.set(keyOf(kind, name), { kind, json })
    log.push(write)
    tell(kind, json)
    for (const listener of listeners) listener(write)
    return json
  }

  const drop = (kind: string, name: string, write: string) => {
    const before = objects.get(keyOf(kind, name))
    if (before === undefined) return
    objects.delete(keyOf(kind, name))
    log.push(write)
    tell(kind, { gone: before.json })
    for (const listener of listeners) listener(write)
  }

  const isHeld = (json: Json) => {
    const { finalizers } = metaOf(json)
    return Array.isArray(finalizers) && finalizers.length > 0
  }
  /** Deletes an object. With finalizers it stays until they are gone. */
  const remove = (kind: string, name: string, write: string) => {
    const before = objects.get(keyOf(kind, name))?.json
    if (before === undefined || !isHeld(before)) return drop(kind, name, write)
    put(kind, name, (json) => ({ ...json, metadata: { deletionTimestamp: new Date(0).toISOString(), ...metaOf(json) } }), write)
  }

  const written = <A extends KubeObject>(resource: Resource<A>, write: string, change: () => Json) =>
    Effect.sync(change).pipe(
      Effect.tap(() => gate(write)),
      Effect.map((json) => decode(resource, json))
    )

  const ofKind = (kind: string) => [...objects.values()].filter((object) => object.kind === kind).map(({ json }) => json)
  const find = (kind: string, name: string) => Option.fromNullishOr(objects.get(keyOf(kind, name))?.json)
  const fields = (object: KubeObject): Json => ({ ...object })
  const conflict = new KubeError({ reason: "Conflict", message: "the object has been modified", status: 409, statusReason: "Conflict" })
  const isThere = new KubeError({ reason: "Conflict", message: "exists", status: 409, statusReason: "AlreadyExists" })

  const service = KubeClient.of({
    get: (resource, name) => Effect.sync(() => Option.map(find(resource.kind, name), (json) => decode(resource, json))),
    list: (resource) => Effect.sync(() => ofKind(resource.kind).map((json) => decode(resource, json))),
    watch: <A extends KubeObject>(resource: Resource<A>, { fieldSelector = "", namespace = "seatrial" }: Selection) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const queue = yield* Queue.unbounded<Json | { readonly gone: Json }>()
          const watcher = { kind: resource.kind, queue }
          yield* Effect.acquireRelease(
            Effect.sync(() => watchers.add(watcher)),
            () => Effect.sync(() => watchers.delete(watcher))
          )
          if (unlisted.has(namespace)) return Stream.never
          const others = [...fieldSelector.matchAll(/metadata\.namespace!=([^,]+)/gu)].map(([, name]) => name)
          const isWithin = (json: Json) => {
            const place = String(metaOf(json).namespace ?? "seatrial")
            return others.length > 0 ? !others.includes(place) : place === namespace
          }
          const first: WatchEvent<A> = {
            _tag: "Synced",
            items: ofKind(resource.kind)
              .filter(isWithin)
              .map((json) => decode(resource, json))
          }
          const mine = Stream.filter(Stream.fromQueue(queue), (message) => isWithin(Predicate.isObject(message.gone) ? message.gone : { ...message }))
          const later = Stream.map(mine, (message): WatchEvent<A> => {
            const gone = message.gone
            return Predicate.isObject(gone)
              ? { _tag: "Removed", object: decode(resource, gone) }
              : { _tag: "Changed", object: decode(resource, { ...message }) }
          })
          return Stream.concat(Stream.succeed(first), later)
        })
      ),
    create: (resource, object) => {
      const { name } = object.metadata
      const refused = refusal(resource.kind)
      if (refused !== null) return Effect.fail(refused)
      if (Option.isSome(find(resource.kind, name))) return Effect.fail(isThere)
      return written(resource, `create ${resource.kind} ${name}`, () =>
        put(
          resource.kind,
          name,
          (json) => ({ ...json, ...fields(object), metadata: { ...metaOf(json), ...object.metadata } }),
          `create ${resource.kind} ${name}`
        )
      )
    },
    update: () => Effect.die("not used"),
    updateStatus: () => Effect.die("not used"),
    apply: (resource, object) => {
      const { name } = object.metadata
      const write = `apply ${resource.kind} ${name}`
      const refused = Option.isSome(find(resource.kind, name)) ? null : refusal(resource.kind)
      if (refused !== null) return Effect.fail(refused)
      return written(resource, write, () =>
        put(
          resource.kind,
          name,
          (json) => ({
            ...json,
            ...fields(object),
            metadata: { ...metaOf(json), ...object.metadata },
            ...(json.status === undefined ? {} : { status: json.status })
          }),
          write
        )
      )
    },
    applyStatus: (resource, object) => {
      const { name, resourceVersion } = object.metadata
      const write = `status ${resource.kind} ${name}`
      const stored = find(resource.kind, name)
      if (Option.isNone(stored)) return Effect.fail(new KubeError({ reason: "NotFound", message: "gone", status: 404 }))
      if (resourceVersion !== undefined && metaOf(stored.value).resourceVersion !== resourceVersion) return Effect.fail(conflict)
      return written(resource, write, () => put(resource.kind, name, (json) => ({ ...json, status: fields(object).status }), write))
    },
    mergePatch: (resource, name, _, patch) => {
      const write = `patch ${resource.kind} ${name}`
      const stored = find(resource.kind, name)
      const { resourceVersion } = Predicate.isObject(patch) ? metaOf({ ...patch }) : {}
      if (Option.isNone(stored)) return Effect.fail(new KubeError({ reason: "NotFound", message: "gone", status: 404 }))
      if (resourceVersion !== undefined && resourceVersion !== metaOf(stored.value).resourceVersion) return Effect.fail(conflict)
      return written(resource, write, () => {
        const json = put(resource.kind, name, (before) => merged(before, patch), write)
        if (metaOf(json).deletionTimestamp !== undefined && !isHeld(json)) drop(resource.kind, name, `gone ${resource.kind} ${name}`)
        return json
      })
    },
    remove: (resource, name, _, options) => {
      const write = `remove ${resource.kind} ${name}`
      const stored = find(resource.kind, name)
      if (Option.isSome(stored) && options?.uid !== undefined && metaOf(stored.value).uid !== options.uid) return Effect.fail(conflict)
      const version = options?.resourceVersion
      if (Option.isSome(stored) && version !== undefined && metaOf(stored.value).resourceVersion !== version) return Effect.fail(conflict)
      return Effect.andThen(
        Effect.sync(() => remove(resource.kind, name, write)),
        Effect.suspend(() => gate(write))
      )
    },
    podLog: (name) => Effect.sync(() => logOf(name))
  })

  return {
    service,
    /** What each pod has printed. */
    setLog: (next: typeof logOf) => {
      logOf = next
    },
    log,
    names: (kind: string) => ofKind(kind).map((json) => String(metaOf(json).name)),
    find,
    /** A status that the cluster itself writes. */
    setStatus: (kind: string, name: string, status: Json) => put(kind, name, (json) => ({ ...json, status }), `cluster ${kind} ${name}`),
    add: (kind: string, name: string, json: Json) =>
      put(kind, name, (made) => ({ ...made, ...json, metadata: { ...metaOf(made), ...metaOf(json) } }), `cluster ${kind} ${name}`),
    drop: (kind: string, name: string) => drop(kind, name, `cluster removes ${kind} ${name}`),
    /** Like `kubectl delete`. */
    remove: (kind: string, name: string) => remove(kind, name, `somebody removes ${kind} ${name}`),
    onWrite: (listener: (write: string) => void) => {
      listeners = [...listeners, listener]
    },
    /** Refuses this many creations of that kind. */
    refuse: (kind: string, status: number, reason: KubeError["reason"], times = Number.POSITIVE_INFINITY, statusReason: string = reason) => {
      let left = times
      refusal = (creations) => (creations === kind && left-- > 0 ? new KubeError({ reason, message: `${kind} is refused`, status, statusReason }) : null)
    },
    /** Whether operators that start from now on fail to read that namespace. */
    setUnlisted: (namespace: string, not: boolean) => void (not ? unlisted.add(namespace) : unlisted.delete(namespace)),
    /** The watches of that kind show nothing until `tellLate`. */
    beLate: (kind: string) => void late.set(kind, []),
    tellLate: (kind: string) => {
      const messages = late.get(kind) ?? []
      late.delete(kind)
      for (const message of messages) tell(kind, message)
    },
    /** Each nth creation of that kind fails as on a busy server, although the object may have been created. */
    refuseEach: (kind: string, nth: number) => {
      let creations = 0
      refusal = (of) => (of === kind && ++creations % nth === 0 ? new KubeError({ reason: "Retryable", message: "the server is busy", status: 429 }) : null)
    },
    setGate: (next: (write: string) => Effect.Effect<void>) => {
      gate = next
    }
  }
}
