import { randomUUID } from "node:crypto"
import { KubeClient, KubeError, type KubeObject, type Resource, type Selection, WatchEvent } from "@seatrial/kube"
import { Clock, Effect, Layer, Option, PubSub, Schema, Stream } from "effect"

type Place = Pick<Resource<KubeObject>, "group" | "plural" | "kind">
type Decoded<R> = R extends Resource<infer A> ? A : never
type Json = { readonly [key: string]: unknown }
const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)
const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => path.reduce<unknown>((found, key) => (isJson(found) ? found[key] : undefined), value)

const merge = (target: unknown, patch: unknown): unknown => {
  if (!isJson(patch)) return patch
  const result: Record<string, unknown> = isJson(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merge(result[key], value)
  }
  return result
}

const matches = (object: Json, selection: Selection) => {
  const terms = (text: string | undefined) => (text === undefined || text === "" ? [] : text.split(",").map((term) => term.split("=")))
  return (
    (selection.namespace === undefined || at(object, "metadata", "namespace") === selection.namespace) &&
    terms(selection.labelSelector).every(([key = "", value]) => at(object, "metadata", "labels", key) === value) &&
    terms(selection.fieldSelector).every(([path = "", value]) => (at(object, ...path.split(".")) ?? "") === value)
  )
}

/** The Kubernetes API in memory, as far as a node, a scheduler and the job controller use it: enough to see what they write, with no network between. */
export const layerMemoryKube = Layer.effect(
  KubeClient,
  Effect.gen(function* () {
    const stores = new Map<string, Map<string, Json>>()
    const changes = yield* PubSub.unbounded<{
      readonly kind: string
      readonly key: string
      readonly old: Json | undefined
      readonly object: Json | undefined
    }>()
    let version = 0
    const kindOf = (resource: Place) => `${resource.group}/${resource.plural}`
    const storeOf = (resource: Place) => {
      const known = stores.get(kindOf(resource)) ?? new Map<string, Json>()
      stores.set(kindOf(resource), known)
      return known
    }
    const decode = <A extends KubeObject>(resource: Resource<A>, object: unknown) => Schema.decodeUnknownSync(resource.schema)(object)
    const put = (resource: Place, key: string, object: Json | undefined) => {
      const store = storeOf(resource)
      const old = store.get(key)
      const next = object === undefined ? undefined : merge(object, { metadata: { resourceVersion: String(++version) } })
      if (isJson(next)) store.set(key, next)
      else store.delete(key)
      PubSub.publishUnsafe(changes, { kind: kindOf(resource), key, old, object: isJson(next) ? next : undefined })
      return next
    }
    const fail = (reason: KubeError["reason"], message: string) => Effect.fail(new KubeError({ reason, message }))
    const born = Effect.fnUntraced(function* (resource: Place, object: unknown) {
      const creationTimestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
      return merge({ apiVersion: "v1", kind: resource.kind, metadata: { uid: randomUUID(), creationTimestamp } }, object)
    })
    const keyOf = (name: string, namespace: string | undefined) => `${namespace ?? ""}/${name}`
    const pods: Place = { group: "", plural: "pods", kind: "Pod" }

    const apply = <A extends KubeObject>(resource: Resource<A>, object: KubeObject) =>
      Effect.gen(function* () {
        const { name, namespace, uid } = object.metadata
        const key = keyOf(name, namespace)
        const old = storeOf(resource).get(key)
        if (uid !== undefined && at(old, "metadata", "uid") !== uid) return yield* fail("Conflict", "another uid")
        const next = merge(old ?? (yield* born(resource, {})), object)
        return decode(resource, put(resource, key, isJson(next) ? next : undefined))
      })

    return KubeClient.of({
      get: (resource, name, namespace) =>
        Effect.sync(() => Option.map(Option.fromUndefinedOr(storeOf(resource).get(keyOf(name, namespace))), (object) => decode(resource, object))),
      list: (resource, selection) =>
        Effect.sync(() => [...storeOf(resource).values()].filter((object) => matches(object, selection)).map((object) => decode(resource, object))),
      watch: (resource, selection) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const subscription = yield* PubSub.subscribe(changes)
            const items = [...storeOf(resource).values()].filter((object) => matches(object, selection)).map((object) => decode(resource, object))
            const later = Stream.fromSubscription(subscription).pipe(
              Stream.filter(({ kind }) => kind === kindOf(resource)),
              Stream.flatMap(({ old, object }): Stream.Stream<WatchEvent<Decoded<typeof resource>>> => {
                if (object !== undefined && matches(object, selection)) return Stream.succeed(WatchEvent.Changed({ object: decode(resource, object) }))
                if (old !== undefined && matches(old, selection)) return Stream.succeed(WatchEvent.Removed({ object: decode(resource, old) }))
                return Stream.empty
              })
            )
            return Stream.concat(Stream.succeed(WatchEvent.Synced({ items })), later)
          })
        ),
      create: (resource, object) =>
        Effect.gen(function* () {
          const { name, namespace } = object.metadata
          const binding = /^pods\/(.*)\/binding$/.exec(resource.plural)
          if (binding !== null) {
            const key = keyOf(binding[1] ?? "", namespace)
            const bound = merge(storeOf(pods).get(key), { spec: { nodeName: at(object, "target", "name") } })
            put(pods, key, isJson(bound) ? bound : undefined)
            return object
          }
          const key = keyOf(name, namespace)
          if (storeOf(resource).has(key)) return yield* fail("Conflict", `${name} already exists`)
          const next = yield* born(resource, Schema.encodeSync(resource.schema)(object))
          return decode(resource, put(resource, key, isJson(next) ? next : undefined))
        }),
      update: (_, object) => fail("Invalid", `update of ${object.metadata.name} is not needed here`),
      updateStatus: (_, object) => fail("Invalid", `updateStatus of ${object.metadata.name} is not needed here`),
      apply,
      applyStatus: (resource, object) =>
        storeOf(resource).has(keyOf(object.metadata.name, object.metadata.namespace)) ? apply(resource, object) : fail("NotFound", "gone"),
      mergePatch: (resource, name, namespace, patch) =>
        Effect.suspend(() => {
          const old = storeOf(resource).get(keyOf(name, namespace))
          if (old === undefined) return fail("NotFound", name)
          const next = merge(old, patch)
          return Effect.succeed(decode(resource, put(resource, keyOf(name, namespace), isJson(next) ? next : undefined)))
        }),
      remove: (resource, name, namespace, options) =>
        Effect.gen(function* () {
          const key = keyOf(name, namespace)
          const old = storeOf(resource).get(key)
          if (old === undefined || (options?.uid !== undefined && at(old, "metadata", "uid") !== options.uid)) return
          const graceful = resource.plural === "pods" && options?.gracePeriodSeconds !== 0 && at(old, "spec", "nodeName") !== undefined
          const deletionTimestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
          const next = graceful ? merge(old, { metadata: { deletionTimestamp } }) : undefined
          put(resource, key, isJson(next) ? next : undefined)
        }),
      podLog: () => fail("NotFound", "no logs here")
    })
  })
)
