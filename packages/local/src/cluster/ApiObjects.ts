import { Clock, Context, Effect, Layer, Stream } from "effect"
import { deleteOptions } from "./Deletion.ts"
import type { Answer, Call, Handler } from "./Http.ts"
import { at, isObject, type Json, type JsonObject, rfc3339, textAt } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"
import { Kinds } from "./Kinds.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { ObjectStore, type Stored } from "./ObjectStore.ts"
import { parsed, patched } from "./Patch.ts"
import { podLog } from "./PodLog.ts"
import { present, stored } from "./present.ts"
import { selection } from "./Selector.ts"
import { applied } from "./ServerSideApply.ts"
import { table, wantsTable } from "./Table.ts"
import { watch } from "./Watch.ts"
import { type Patch, type WriteOptions, Writes } from "./Writes.ts"
import type { Target } from "./writeSteps.ts"

interface CollectionTarget extends Target {
  /** Whether the path has no namespace, although the kind is namespaced. */
  readonly everywhere: boolean
}

/** The target of a resource path. Without a name it is the collection. */
const targetOf = (kinds: Kinds["Service"], path: ReadonlyArray<string>): CollectionTarget | undefined => {
  const [root, first = "", second = "", ...others] = path
  const [group, version, rest] = root === "api" ? ["", first, path.slice(2)] : [first, second, others]
  const [namespaces, namespace = "", plural] = rest
  const inner = group === "" && (plural === "status" || plural === "finalize")
  if (namespaces === "namespaces" && plural !== undefined && !inner) {
    const kind = kinds.find(group, version, plural)
    const [name = "", subresource = "", ...more] = rest.slice(3)
    return kind?.namespaced === true && more.length === 0 ? { kind, namespace, name, subresource, everywhere: false } : undefined
  }
  const [own = "", name = "", subresource = "", ...more] = rest
  const kind = kinds.find(group, version, own)
  if (kind === undefined || more.length > 0 || (kind.namespaced && name !== "")) return undefined
  return { kind, namespace: "", name, subresource, everywhere: kind.namespaced }
}

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

/** All verbs on stored objects: the paths below `/api/v1` and `/apis/GROUP/VERSION`. */
export class ApiObjects extends Context.Service<ApiObjects, { readonly handle: Handler }>()("seatrial/local/ApiObjects") {
  static readonly layer = Layer.effect(
    ApiObjects,
    Effect.gen(function* () {
      const store = yield* ObjectStore
      const kinds = yield* Kinds
      const writes = yield* Writes

      const one = Effect.fnUntraced(function* (call: Call, kind: Kind, item: Stored, code = 200) {
        const object = present(kind, item.object)
        if (!wantsTable(call.accept)) return { code, json: object }
        const now = yield* Clock.currentTimeMillis
        return { code, json: table(kind, [object], { resourceVersion: String(item.version) }, call.query.get("includeObject"), now) }
      })

      const list = Effect.fnUntraced(function* (call: Call, { everywhere, kind, namespace }: CollectionTarget) {
        const { query } = call
        const matches = yield* Effect.fromResult(selection(kind, query))
        const limit = number(query.get("limit")) ?? 0
        const token = query.get("continue") ?? ""
        const from = token === "" ? undefined : yield* pageOf(token)
        const version = from?.rv ?? store.version()
        const known = store.listAt(version, kind.stored, everywhere || !kind.namespaced ? undefined : namespace)
        if (known === undefined) {
          return yield* new KubeStatus({
            code: 410,
            reason: "Expired",
            message: "The provided continue parameter is too old to display a consistent list result."
          })
        }
        const fromVersion = number(query.get("resourceVersion"))
        if (fromVersion !== undefined && fromVersion > store.version()) {
          return yield* new KubeStatus({
            code: 504,
            reason: "Timeout",
            message: `Too large resource version: ${fromVersion}, current: ${store.version()}`,
            details: { retryAfterSeconds: 1, causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] }
          })
        }
        const start = from?.start ?? ""
        const keyOf = (item: Stored) => `${item.namespace}/${item.name}`
        const all = known.filter((item) => matches(item.object))
        // With a selector the number of remaining objects is unknown until they are read.
        const counted = (query.get("labelSelector") ?? "") === "" && (query.get("fieldSelector") ?? "") === ""
        const rest = start === "" ? all : all.filter((item) => keyOf(item) > start)
        const page = limit > 0 ? rest.slice(0, limit) : rest
        const last = page.at(-1)
        const metadata: JsonObject = {
          resourceVersion: String(version),
          ...(last !== undefined && page.length < rest.length
            ? { continue: cursor(version, keyOf(last)), ...(counted ? { remainingItemCount: rest.length - page.length } : {}) }
            : {})
        }
        const items = page.map((item) => present(kind, item.object))
        const now = yield* Clock.currentTimeMillis
        const json: JsonObject = wantsTable(call.accept)
          ? table(kind, items, metadata, query.get("includeObject"), now)
          : { kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata, items }
        return { code: 200, json }
      })

      const watching = Effect.fnUntraced(function* (call: Call, { everywhere, kind, name, namespace }: CollectionTarget) {
        const { query } = call
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
            namespace: everywhere || !kind.namespaced ? undefined : namespace,
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

      const bodyOf = Effect.fnUntraced(function* (call: Call, kind: Kind, typed = false) {
        const body = yield* parsed(call.body)
        if (!isObject(body)) return yield* KubeStatus.badRequest("the request's body is not an object")
        const [apiVersion, name] = [textAt(body, "apiVersion"), textAt(body, "kind")]
        if (typed && (apiVersion === "" || name === "")) return yield* KubeStatus.badRequest("error decoding patch: Object 'Kind' is missing")
        if ((name !== "" && name !== kind.kind) || (apiVersion !== "" && apiVersion !== apiVersionOf(kind))) {
          return yield* KubeStatus.badRequest(`the object provided is ${apiVersion}, Kind=${name}, where ${apiVersionOf(kind)}, Kind=${kind.kind} is expected`)
        }
        return stored(kind, body)
      })

      const optionsOf = ({ query, userAgent }: Call): WriteOptions => ({
        dryRun: query.get("dryRun") === "All",
        strict: query.get("fieldValidation") === "Strict",
        manager: query.get("fieldManager") || userAgent.split("/")[0] || "unknown"
      })

      const bind = Effect.fnUntraced(function* (call: Call, target: Target) {
        const node = textAt(yield* parsed(call.body), "target", "name")
        if (node === "")
          return yield* KubeStatus.invalid(target.kind, target.name, [{ reason: "FieldValueRequired", field: "target.name", message: "Required value" }])
        const time = rfc3339(yield* Clock.currentTimeMillis)
        yield* writes.bind(target, node, time, optionsOf(call))
        return { code: 201, json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 } }
      })

      const remove = Effect.fnUntraced(function* (call: Call, target: Target) {
        const body = call.body === "" ? undefined : yield* parsed(call.body)
        const options = yield* Effect.fromResult(deleteOptions(target.kind, body, call.query))
        const { gone, stored: last } = yield* writes.remove(target, options)
        if (!gone) return yield* one(call, target.kind, last)
        const details = { name: target.name, ...(target.kind.group === "" ? {} : { group: target.kind.group }), kind: target.kind.plural, uid: last.uid }
        return { code: 200, json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details } }
      })

      const removeAll = Effect.fnUntraced(function* (call: Call, target: CollectionTarget) {
        const matches = yield* Effect.fromResult(selection(target.kind, call.query))
        const options = yield* Effect.fromResult(deleteOptions(target.kind, call.body === "" ? undefined : yield* parsed(call.body), call.query))
        const chosen = store
          .list(target.kind.stored, target.everywhere || !target.kind.namespaced ? undefined : target.namespace)
          .filter(({ object }) => matches(object))
        for (const { name, namespace } of chosen) {
          yield* writes.remove({ kind: target.kind, name, namespace }, options).pipe(
            Effect.catchIf(
              ({ code }) => code === 404,
              () => Effect.void
            )
          )
        }
        const items = chosen.map(({ object }) => present(target.kind, object))
        return {
          code: 200,
          json: { kind: target.kind.listKind, apiVersion: apiVersionOf(target.kind), metadata: { resourceVersion: String(store.version()) }, items }
        }
      })

      const patch = Effect.fnUntraced(function* (call: Call, target: Target) {
        const { kind } = target
        const options = optionsOf(call)
        const apply = call.mediaType.startsWith("application/apply-patch")
        if (apply && !call.query.has("fieldManager")) {
          return yield* KubeStatus.invalid({ ...kind, kind: "PatchOptions", group: "meta.k8s.io" }, "", [
            { reason: "FieldValueRequired", field: "fieldManager", message: "Required value: is required for apply patch" }
          ])
        }
        const change: Json = apply ? yield* bodyOf(call, kind, true) : yield* parsed(call.body)
        const force = call.query.get("force") === "true"
        const how: Patch = (current, writer) =>
          apply && isObject(change)
            ? applied(kind, current, change, { ...writer, manager: options.manager }, force)
            : Effect.map(patched(kind, call.mediaType, present(kind, current), change), (object) => ({ object: stored(kind, object) }))
        const outcome = yield* writes.update(target, how, { ...options, patches: true }, apply)
        return yield* one(call, kind, outcome.stored, outcome.created ? 201 : 200)
      })

      const handleCollection = Effect.fnUntraced(function* (call: Call, target: CollectionTarget, isWatch: boolean): Effect.fn.Return<Answer, KubeStatus> {
        const { kind } = target
        switch (call.method) {
          case "GET":
            return yield* isWatch || call.query.get("watch") === "1" ? watching(call, target) : list(call, target)
          case "DELETE":
            return yield* removeAll(call, target)
          case "POST": {
            if (target.everywhere) return yield* KubeStatus.methodNotAllowed()
            const body = yield* bodyOf(call, kind)
            return yield* one(call, kind, yield* writes.create(target, body, optionsOf(call)), 201)
          }
          default:
            return yield* KubeStatus.methodNotAllowed()
        }
      })

      const readObject = Effect.fnUntraced(function* (call: Call, target: CollectionTarget, isWatch: boolean): Effect.fn.Return<Answer, KubeStatus> {
        if (isWatch) return yield* watching(call, target)
        const { kind, name, namespace, subresource } = target
        const item = store.get(kind.stored, namespace, name)
        if (item === undefined) return yield* KubeStatus.notFound(kind, name)
        return yield* subresource === "log" ? podLog(store, item, call.query) : one(call, kind, item)
      })

      const replace = Effect.fnUntraced(function* (call: Call, target: Target) {
        const body = yield* bodyOf(call, target.kind)
        const outcome = yield* writes.update(target, () => Effect.succeed({ object: body }), optionsOf(call))
        return yield* one(call, target.kind, outcome.stored)
      })

      const handleObject = Effect.fnUntraced(function* (call: Call, target: CollectionTarget, isWatch: boolean): Effect.fn.Return<Answer, KubeStatus> {
        const { method } = call
        const { subresource } = target
        if (subresource === "binding") return yield* method === "POST" ? bind(call, target) : KubeStatus.methodNotAllowed()
        if (method === "GET") return yield* readObject(call, target, isWatch)
        if (subresource === "log") return yield* KubeStatus.methodNotAllowed()
        if (method === "PUT") return yield* replace(call, target)
        if (method === "PATCH") return yield* patch(call, target)
        if (method === "DELETE" && subresource === "") return yield* remove(call, target)
        return yield* KubeStatus.methodNotAllowed()
      })

      const handle: Handler = Effect.fnUntraced(function* (call): Effect.fn.Return<Answer, KubeStatus> {
        const verbPosition = call.path[0] === "api" ? 2 : 3
        const hasWatchPrefix = call.path[verbPosition] === "watch"
        const target = targetOf(kinds, hasWatchPrefix ? call.path.filter((_, position) => position !== verbPosition) : call.path)
        if (target === undefined) return yield* KubeStatus.noSuchPath()
        const { kind, name, subresource } = target
        if (subresource !== "" && !kind.subresources.includes(subresource)) return yield* KubeStatus.noSuchPath()
        const isWatch = hasWatchPrefix || call.query.get("watch") === "true"
        return yield* name === "" ? handleCollection(call, target, isWatch) : handleObject(call, target, isWatch)
      })

      return ApiObjects.of({ handle })
    })
  )
}
