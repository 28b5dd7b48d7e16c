import { Clock, Effect, Stream } from "effect"
import type { Call } from "./Http.ts"
import { at, type JsonObject, textAt } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { ObjectStore, Stored } from "./ObjectStore.ts"
import { parsed } from "./Patch.ts"
import { present } from "./present.ts"
import { selection } from "./Selector.ts"
import { table, wantsTable } from "./Table.ts"
import { watch } from "./Watch.ts"
import type { Target } from "./writeSteps.ts"

export interface CollectionTarget extends Target {
  /** Whether the path has no namespace, although the kind is namespaced. */
  readonly everywhere: boolean
}

type Store = ObjectStore["Service"]

/** The namespace that a request is limited to; undefined for all. */
export const namespaceOf = ({ everywhere, kind, namespace }: CollectionTarget): string | undefined => (everywhere || !kind.namespaced ? undefined : namespace)

const cursor = (version: number, key: string) => Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: version, start: key })).toString("base64url")

/** The position of a continue token; 400 if the token is invalid. */
const pageOf = (token: string): Effect.Effect<{ readonly rv: number; readonly start: string }, KubeStatus> =>
  Effect.flatMap(parsed(Buffer.from(token, "base64url").toString()), (page) => {
    const rv = at(page, "rv")
    return textAt(page, "v") === "meta.k8s.io/v1" && typeof rv === "number"
      ? Effect.succeed({ rv, start: textAt(page, "start") })
      : Effect.fail(KubeStatus.badRequest("continue key is not valid: unrecognized value"))
  })

const number = (text: string | null): number | undefined => (text === null || text === "" || !/^\d+$/.test(text) ? undefined : Number(text))

/** The answer with one object, as a table if the client prefers that. */
export const answerOne = Effect.fnUntraced(function* (call: Call, kind: Kind, item: Stored, code = 200) {
  const object = present(kind, item.object)
  if (!wantsTable(call.accept)) return { code, json: object }
  const now = yield* Clock.currentTimeMillis
  return { code, json: table(kind, [object], { resourceVersion: String(item.version) }, call.query.get("includeObject"), now) }
})

/** Refuses a list at a version that does not exist yet. */
const checkVersion = (store: Store, query: URLSearchParams): Effect.Effect<void, KubeStatus> => {
  const fromVersion = number(query.get("resourceVersion"))
  if (fromVersion === undefined || fromVersion <= store.version()) return Effect.void
  return Effect.fail(
    new KubeStatus({
      code: 504,
      reason: "Timeout",
      message: `Too large resource version: ${fromVersion}, current: ${store.version()}`,
      details: { retryAfterSeconds: 1, causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] }
    })
  )
}

const itemKey = (item: Stored) => `${item.namespace}/${item.name}`

/** One page of a list, and the metadata that leads to the next one. */
const pageFrom = (all: ReadonlyArray<Stored>, version: number, start: string, query: URLSearchParams) => {
  const limit = number(query.get("limit")) ?? 0
  const rest = start === "" ? all : all.filter((item) => itemKey(item) > start)
  const page = limit > 0 ? rest.slice(0, limit) : rest
  const last = page.at(-1)
  const resourceVersion = String(version)
  if (last === undefined || page.length === rest.length) return { page, metadata: { resourceVersion } }
  // With a selector the number of remaining objects is unknown until they are read.
  const isCounted = !query.get("labelSelector") && !query.get("fieldSelector")
  const remaining = isCounted ? { remainingItemCount: rest.length - page.length } : {}
  return { page, metadata: { resourceVersion, continue: cursor(version, itemKey(last)), ...remaining } }
}

/** The answer with a list. */
export const listObjects = Effect.fnUntraced(function* (store: Store, call: Call, target: CollectionTarget) {
  const { query } = call
  const { kind } = target
  const matches = yield* Effect.fromResult(selection(kind, query))
  const token = query.get("continue") ?? ""
  const from = token === "" ? undefined : yield* pageOf(token)
  const version = from?.rv ?? store.version()
  const known = store.listAt(version, kind.stored, namespaceOf(target))
  if (known === undefined) {
    return yield* new KubeStatus({
      code: 410,
      reason: "Expired",
      message: "The provided continue parameter is too old to display a consistent list result."
    })
  }
  yield* checkVersion(store, query)
  const all = known.filter((item) => matches(item.object))
  const { metadata, page } = pageFrom(all, version, from?.start ?? "", query)
  const items = page.map((item) => present(kind, item.object))
  const now = yield* Clock.currentTimeMillis
  const json: JsonObject = wantsTable(call.accept)
    ? table(kind, items, metadata, query.get("includeObject"), now)
    : { kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata, items }
  return { code: 200, json }
})

/** The answer with a watch. */
export const watchObjects = Effect.fnUntraced(function* (store: Store, call: Call, target: CollectionTarget) {
  const { query } = call
  const { kind, name } = target
  const matches = yield* Effect.fromResult(selection(kind, query))
  const fromVersion = number(query.get("resourceVersion"))
  const initial = query.get("sendInitialEvents") === "true"
  if (initial && query.get("resourceVersionMatch") !== "NotOlderThan") {
    const message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    return yield* KubeStatus.invalid({ ...kind, kind: "ListOptions", group: "meta.k8s.io" }, "", [
      { reason: "FieldValueForbidden", field: "resourceVersionMatch", message }
    ])
  }
  const stream = Stream.unwrap(
    watch(store, {
      kind,
      namespace: namespaceOf(target),
      matches: (object) => matches(object) && (name === "" || textAt(object, "metadata", "name") === name),
      from: initial || fromVersion === 0 ? undefined : fromVersion,
      bookmarks: query.get("allowWatchBookmarks") === "true",
      markInitial: initial,
      seconds: number(query.get("timeoutSeconds")) || 1_800,
      asTable: wantsTable(call.accept),
      include: query.get("includeObject")
    })
  )
  return { code: 200, mediaType: "application/json", stream }
})
