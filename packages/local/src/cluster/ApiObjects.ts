import { Context, Effect, Layer } from "effect"
import { bindPod, createObject, optionsOf, patchObject, removeAll, removeObject, replaceObject } from "./changeObjects.ts"
import type { Answer, Call, Handler } from "./Http.ts"
import { Kinds } from "./Kinds.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { ObjectStore } from "./ObjectStore.ts"
import { podLog } from "./PodLog.ts"
import { answerOne, type CollectionTarget, listObjects, watchObjects } from "./readObjects.ts"
import { readScale, writeScale } from "./scale.ts"
import { Writes } from "./Writes.ts"

/** The parts of a path below a version that name objects in a namespace; undefined for cluster-scoped paths. */
const inNamespace = (group: string, [root, namespace = "", plural, ...rest]: ReadonlyArray<string>) => {
  const isOwn = group === "" && (plural === "status" || plural === "finalize")
  return root === "namespaces" && plural !== undefined && !isOwn ? { namespace, plural, rest } : undefined
}

/** The target of a resource path. Without a name it is the collection. */
const targetOf = (kinds: Kinds["Service"], path: ReadonlyArray<string>): CollectionTarget | undefined => {
  const [root, first = "", second = ""] = path
  const [group, version, below] = root === "api" ? ["", first, path.slice(2)] : [first, second, path.slice(3)]
  const inside = inNamespace(group, below)
  const [plural = "", ...rest] = inside === undefined ? below : [inside.plural, ...inside.rest]
  const kind = kinds.find(group, version, plural)
  const [name = "", subresource = "", ...more] = rest
  if (kind === undefined || more.length > 0) return undefined
  if (inside !== undefined) return kind.namespaced ? { kind, namespace: inside.namespace, name, subresource, everywhere: false } : undefined
  return kind.namespaced && name !== "" ? undefined : { kind, namespace: "", name, subresource, everywhere: kind.namespaced }
}

/** What requests read and change. */
interface Objects {
  readonly store: ObjectStore["Service"]
  readonly writes: Writes["Service"]
}

const handleCollection = Effect.fnUntraced(function* (
  { store, writes }: Objects,
  call: Call,
  target: CollectionTarget,
  isWatch: boolean
): Effect.fn.Return<Answer, KubeStatus> {
  switch (call.method) {
    case "GET":
      return yield* isWatch || call.query.get("watch") === "1" ? watchObjects(store, call, target) : listObjects(store, call, target)
    case "DELETE":
      return yield* removeAll(store, writes, call, target)
    case "POST":
      return yield* target.everywhere ? KubeStatus.methodNotAllowed() : createObject(writes, call, target)
    default:
      return yield* KubeStatus.methodNotAllowed()
  }
})

const readObject = Effect.fnUntraced(function* (
  store: ObjectStore["Service"],
  call: Call,
  target: CollectionTarget,
  isWatch: boolean
): Effect.fn.Return<Answer, KubeStatus> {
  if (isWatch) return yield* watchObjects(store, call, target)
  const { kind, name, namespace, subresource } = target
  const item = store.get(kind.stored, namespace, name)
  if (item === undefined) return yield* KubeStatus.notFound(kind, name)
  if (subresource === "scale" && kind.scale !== undefined) return yield* readScale(item.object, kind.scale)
  return yield* subresource === "log" ? podLog(store, item, call.query) : answerOne(call, kind, item)
})

const handleObject = Effect.fnUntraced(function* (
  { store, writes }: Objects,
  call: Call,
  target: CollectionTarget,
  isWatch: boolean
): Effect.fn.Return<Answer, KubeStatus> {
  const { method } = call
  const { subresource } = target
  if (subresource === "binding") return yield* method === "POST" ? bindPod(writes, call, target) : KubeStatus.methodNotAllowed()
  if (method === "GET") return yield* readObject(store, call, target, isWatch)
  if (subresource === "log") return yield* KubeStatus.methodNotAllowed()
  if (subresource === "scale" && target.kind.scale !== undefined)
    return yield* method === "PUT" || method === "PATCH" ? writeScale(writes, call, target, target.kind.scale, optionsOf(call)) : KubeStatus.methodNotAllowed()
  if (method === "PUT") return yield* replaceObject(writes, call, target)
  if (method === "PATCH") return yield* patchObject(writes, call, target)
  if (method === "DELETE" && subresource === "") return yield* removeObject(writes, call, target)
  return yield* KubeStatus.methodNotAllowed()
})

/** All verbs on stored objects: the paths below `/api/v1` and `/apis/GROUP/VERSION`. */
export class ApiObjects extends Context.Service<ApiObjects, { readonly handle: Handler }>()("seatrial/local/ApiObjects") {
  static readonly layer = Layer.effect(
    ApiObjects,
    Effect.gen(function* () {
      const kinds = yield* Kinds
      const objects: Objects = { store: yield* ObjectStore, writes: yield* Writes }

      const handle: Handler = Effect.fnUntraced(function* (call): Effect.fn.Return<Answer, KubeStatus> {
        const verbPosition = call.path[0] === "api" ? 2 : 3
        const hasWatchPrefix = call.path[verbPosition] === "watch"
        const target = targetOf(kinds, hasWatchPrefix ? call.path.filter((_, position) => position !== verbPosition) : call.path)
        if (target === undefined) return yield* KubeStatus.noSuchPath()
        const { kind, name, subresource } = target
        if (subresource !== "" && !kind.subresources.includes(subresource)) return yield* KubeStatus.noSuchPath()
        const isWatch = hasWatchPrefix || call.query.get("watch") === "true"
        return yield* name === "" ? handleCollection(objects, call, target, isWatch) : handleObject(objects, call, target, isWatch)
      })

      return ApiObjects.of({ handle })
    })
  )
}
