import { Clock, Effect } from "effect"
import { deleteOptions } from "./Deletion.ts"
import type { Call } from "./Http.ts"
import { isObject, type Json, rfc3339, textAt } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { ObjectStore } from "./ObjectStore.ts"
import { parsed, patched } from "./Patch.ts"
import { present, stored } from "./present.ts"
import { answerOne, type CollectionTarget, namespaceOf } from "./readObjects.ts"
import { selection } from "./Selector.ts"
import { applied } from "./ServerSideApply.ts"
import type { Patch, WriteOptions, Writes } from "./Writes.ts"
import type { Target } from "./writeSteps.ts"

type Writer = Writes["Service"]

/** The object in a request's body. `typed`: whether it must state its kind. */
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

export const optionsOf = ({ query, userAgent }: Call): WriteOptions => ({
  dryRun: query.get("dryRun") === "All",
  strict: query.get("fieldValidation") === "Strict",
  manager: query.get("fieldManager") || userAgent.split("/")[0] || "unknown"
})

/** Stores the object of the body under a new name. */
export const createObject = Effect.fnUntraced(function* (writes: Writer, call: Call, target: CollectionTarget) {
  const body = yield* bodyOf(call, target.kind)
  return yield* answerOne(call, target.kind, yield* writes.create(target, body, optionsOf(call)), 201)
})

/** Assigns a pod to a node. */
export const bindPod = Effect.fnUntraced(function* (writes: Writer, call: Call, target: Target) {
  const node = textAt(yield* parsed(call.body), "target", "name")
  if (node === "")
    return yield* KubeStatus.invalid(target.kind, target.name, [{ reason: "FieldValueRequired", field: "target.name", message: "Required value" }])
  const time = rfc3339(yield* Clock.currentTimeMillis)
  yield* writes.bind(target, node, time, optionsOf(call))
  return { code: 201, json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 } }
})

export const removeObject = Effect.fnUntraced(function* (writes: Writer, call: Call, target: Target) {
  const body = call.body === "" ? undefined : yield* parsed(call.body)
  const options = yield* Effect.fromResult(deleteOptions(target.kind, body, call.query))
  const { gone, stored: last } = yield* writes.remove(target, options)
  if (!gone) return yield* answerOne(call, target.kind, last)
  const details = { name: target.name, ...(target.kind.group === "" ? {} : { group: target.kind.group }), kind: target.kind.plural, uid: last.uid }
  return { code: 200, json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details } }
})

/** Removes the objects of a collection that the request selects. */
export const removeAll = Effect.fnUntraced(function* (store: ObjectStore["Service"], writes: Writer, call: Call, target: CollectionTarget) {
  const matches = yield* Effect.fromResult(selection(target.kind, call.query))
  const options = yield* Effect.fromResult(deleteOptions(target.kind, call.body === "" ? undefined : yield* parsed(call.body), call.query))
  const chosen = store.list(target.kind.stored, namespaceOf(target)).filter(({ object }) => matches(object))
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

/** Patches an object. A server-side apply creates it if it does not exist. */
export const patchObject = Effect.fnUntraced(function* (writes: Writer, call: Call, target: Target) {
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
  return yield* answerOne(call, kind, outcome.stored, outcome.created ? 201 : 200)
})

/** Replaces an object by the one of the body. */
export const replaceObject = Effect.fnUntraced(function* (writes: Writer, call: Call, target: Target) {
  const body = yield* bodyOf(call, target.kind)
  const outcome = yield* writes.update(target, () => Effect.succeed({ object: body }), optionsOf(call))
  return yield* answerOne(call, target.kind, outcome.stored)
})
