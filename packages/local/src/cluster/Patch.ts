import { Effect } from "effect"
import { parse } from "yaml"
import { at, equal, isList, isObject, type Json, type JsonObject, put, textAt } from "./Json.ts"
import type { Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { patchKey } from "./ListShape.ts"

/** RFC 7386. */
const mergePatch = (value: Json | undefined, patch: Json): Json => {
  if (!isObject(patch)) return patch
  const start: JsonObject = isObject(value) ? value : {}
  return Object.entries(patch).reduce<JsonObject>(
    (object, [name, change]) => put(object, [name], change === null ? undefined : mergePatch(object[name], change)),
    start
  )
}

const directives = new Set(["$patch", "$retainKeys"])

const mergedList = (current: ReadonlyArray<Json>, patch: ReadonlyArray<Json>, key: string): ReadonlyArray<Json> => {
  const merged = [...current]
  for (const item of patch) {
    const position = merged.findIndex((one) => equal(at(one, key), at(item, key)))
    if (textAt(item, "$patch") === "delete") {
      if (position >= 0) merged.splice(position, 1)
    } else if (position >= 0) {
      merged[position] = strategicMerge(merged[position], item, "", "")
    } else {
      merged.push(strategicMerge(undefined, item, "", ""))
    }
  }
  return merged
}

const isDirective = (item: Json, directive: string) => textAt(item, "$patch") === directive

/** A patched list: elements with a merge key are merged, and the elements of all other lists are replaced. */
const strategicList = (value: Json | undefined, patch: ReadonlyArray<Json>, name: string, parent: string): ReadonlyArray<Json> => {
  if (name === "finalizers" && isList(value)) return [...value, ...patch.filter((one) => !value.some((known) => equal(known, one)))]
  const key = patchKey(name, parent)
  const replaces = key === undefined || !isList(value) || patch.some((one) => isDirective(one, "replace"))
  return replaces ? patch.filter((one) => textAt(one, "$patch") === "") : mergedList(value, patch, key)
}

const deletedPrefix = "$deleteFromPrimitiveList/"

/** Applies one member of a patch to an object with this name. */
const strategicMember = (object: JsonObject, field: string, change: Json, name: string): JsonObject => {
  if (directives.has(field) || field.startsWith("$setElementOrder/")) return object
  if (!field.startsWith(deletedPrefix)) return put(object, [field], change === null ? undefined : strategicMerge(object[field], change, field, name))
  const list = field.slice(deletedPrefix.length)
  const current = object[list]
  if (!isList(current) || !isList(change)) return object
  const remaining = current.filter((one) => !change.some((gone) => equal(gone, one)))
  return put(object, [list], remaining)
}

/** Kubernetes' strategic merge: lists with a merge key are merged by element, all other lists are replaced. */
const strategicMerge = (value: Json | undefined, patch: Json, name = "", parent = "object"): Json => {
  if (isList(patch)) return strategicList(value, patch, name, parent)
  if (!isObject(patch)) return patch
  if (isDirective(patch, "delete")) return {}
  const start: JsonObject = isObject(value) && !isDirective(patch, "replace") ? value : {}
  const retained = patch.$retainKeys
  const initial = isList(retained) ? Object.fromEntries(Object.entries(start).filter(([field]) => retained.includes(field))) : start
  return Object.entries(patch).reduce<JsonObject>((object, [field, change]) => strategicMember(object, field, change, name), initial)
}

const pointer = (path: string): ReadonlyArray<string> =>
  path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))

const lookUp = (value: Json | undefined, [step, ...rest]: ReadonlyArray<string>): Json | undefined =>
  step === undefined ? value : lookUp(isList(value) ? value[Number(step)] : at(value, step), rest)

type Edit = "add" | "replace" | "remove"

/** A list with one element edited; undefined if the path does not exist. */
const editedList = (list: ReadonlyArray<Json>, step: string, rest: ReadonlyArray<string>, edit: Edit, operand: Json): Json | undefined => {
  const position = step === "-" ? list.length : Number(step)
  const adds = edit === "add" && rest.length === 0
  if (!Number.isInteger(position) || position < 0 || position > (adds ? list.length : list.length - 1)) return undefined
  if (adds) return list.toSpliced(position, 0, operand)
  if (edit === "remove" && rest.length === 0) return list.toSpliced(position, 1)
  const inner = edited(list[position], rest, edit, operand)
  return inner === undefined ? undefined : list.with(position, inner)
}

/** An object with one field edited; undefined if the path does not exist. */
const editedObject = (object: JsonObject, step: string, rest: ReadonlyArray<string>, edit: Edit, operand: Json): Json | undefined => {
  const isLast = rest.length === 0
  if (!Object.hasOwn(object, step) && !(edit === "add" && isLast)) return undefined
  if (isLast) return put(object, [step], edit === "remove" ? undefined : operand)
  const inner = edited(object[step], rest, edit, operand)
  return inner === undefined ? undefined : put(object, [step], inner)
}

/** The value with one field edited; undefined if the path does not exist. */
const edited = (value: Json | undefined, [step, ...rest]: ReadonlyArray<string>, edit: Edit, operand: Json): Json | undefined => {
  if (step === undefined) return operand
  if (isList(value)) return editedList(value, step, rest, edit, operand)
  return isObject(value) ? editedObject(value, step, rest, edit, operand) : undefined
}

/** The value with `operand` at a path; undefined if either does not exist. */
const placed = (value: Json | undefined, path: string, edit: "add" | "replace", operand: Json | undefined): Json | undefined =>
  operand === undefined ? undefined : edited(value, pointer(path), edit, operand)

/** An operation of a JSON patch. Undefined if it cannot be applied. */
type Operation = (value: Json, path: string, operation: Json) => Json | undefined

const sourceOf = (operation: Json) => pointer(textAt(operation, "from"))

const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["add", (value, path, operation) => placed(value, path, "add", at(operation, "value"))],
  ["replace", (value, path, operation) => placed(value, path, "replace", at(operation, "value"))],
  ["remove", (value, path) => edited(value, pointer(path), "remove", null)],
  ["copy", (value, path, operation) => placed(value, path, "add", lookUp(value, sourceOf(operation)))],
  ["move", (value, path, operation) => placed(edited(value, sourceOf(operation), "remove", null), path, "add", lookUp(value, sourceOf(operation)))],
  ["test", (value, path, operation) => (equal(lookUp(value, pointer(path)) ?? null, at(operation, "value") ?? null) ? value : undefined)]
])

/** RFC 6902. 422 if an operation cannot be applied, as in Kubernetes. */
const jsonPatch = Effect.fnUntraced(function* (object: JsonObject, patch: Json): Effect.fn.Return<JsonObject, KubeStatus> {
  if (!isList(patch)) return yield* KubeStatus.badRequest("a JSON patch is a list of operations")
  let value: Json = object
  for (const operation of patch) {
    const op = textAt(operation, "op")
    const path = textAt(operation, "path")
    const next: Json | undefined = operations.get(op)?.(value, path, operation)
    if (next === undefined) {
      return yield* new KubeStatus({
        code: 422,
        reason: "Invalid",
        message: `the server rejected our request due to an error in our request: ${op} operation does not apply: ${path}`
      })
    }
    value = next
  }
  return isObject(value) ? value : yield* KubeStatus.badRequest("the patch does not leave an object")
})

/** Parses a body that is JSON or YAML. */
export const parsed = (text: string): Effect.Effect<Json, KubeStatus> =>
  Effect.try({
    try: (): Json => (/^\s*[[{]/.test(text) ? JSON.parse(text) : parse(text)),
    catch: (cause) => KubeStatus.badRequest(`the object provided is unrecognized (must be of type JSON or YAML): ${String(cause)}`)
  })

const unsupported = (kind: Kind) =>
  new KubeStatus({
    code: 415,
    reason: "UnsupportedMediaType",
    message: `the body of the request was in an unknown format - accepted media types include: ${["application/json-patch+json", "application/merge-patch+json", ...(kind.custom ? [] : ["application/strategic-merge-patch+json"]), "application/apply-patch+yaml"].join(", ")}`
  })

/** Applies a JSON, merge or strategic merge patch; 415 for any other kind. */
export const patched = Effect.fnUntraced(function* (kind: Kind, mediaType: string, current: JsonObject, patch: Json) {
  switch (mediaType) {
    case "application/json-patch+json":
      return yield* jsonPatch(current, patch)
    case "application/merge-patch+json": {
      const merged = mergePatch(current, patch)
      return isObject(merged) ? merged : yield* KubeStatus.badRequest("the patch is not an object")
    }
    case "application/strategic-merge-patch+json": {
      if (kind.custom) return yield* unsupported(kind)
      const merged = strategicMerge(current, patch)
      return isObject(merged) ? merged : yield* KubeStatus.badRequest("the patch is not an object")
    }
    default:
      return yield* unsupported(kind)
  }
})
