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

/** Kubernetes' strategic merge: lists with a merge key are merged by element, all other lists are replaced. */
const strategicMerge = (value: Json | undefined, patch: Json, name = "", parent = "object"): Json => {
  if (isList(patch)) {
    if (name === "finalizers" && isList(value)) return [...value, ...patch.filter((one) => !value.some((known) => equal(known, one)))]
    const key = patchKey(name, parent)
    if (key === undefined || !isList(value)) return patch.filter((one) => textAt(one, "$patch") === "")
    return patch.some((one) => textAt(one, "$patch") === "replace") ? patch.filter((one) => textAt(one, "$patch") === "") : mergedList(value, patch, key)
  }
  if (!isObject(patch)) return patch
  const how = textAt(patch, "$patch")
  if (how === "delete") return {}
  const start: JsonObject = isObject(value) && how !== "replace" ? value : {}
  const retained = patch.$retainKeys
  const initial = isList(retained) ? Object.fromEntries(Object.entries(start).filter(([field]) => retained.includes(field))) : start
  return Object.entries(patch).reduce<JsonObject>((object, [field, change]) => {
    if (directives.has(field) || field.startsWith("$setElementOrder/")) return object
    if (field.startsWith("$deleteFromPrimitiveList/")) {
      const list = field.slice("$deleteFromPrimitiveList/".length)
      const current = object[list]
      return isList(current) && isList(change)
        ? put(
            object,
            [list],
            current.filter((one) => !change.some((gone) => equal(gone, one)))
          )
        : object
    }
    return put(object, [field], change === null ? undefined : strategicMerge(object[field], change, field, name))
  }, initial)
}

const pointer = (path: string): ReadonlyArray<string> =>
  path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))

const lookUp = (value: Json | undefined, [step, ...rest]: ReadonlyArray<string>): Json | undefined =>
  step === undefined ? value : lookUp(isList(value) ? value[Number(step)] : at(value, step), rest)

type Edit = "add" | "replace" | "remove"

/** The value with one field edited; undefined if the path does not exist. */
const edited = (value: Json | undefined, [step, ...rest]: ReadonlyArray<string>, edit: Edit, operand: Json): Json | undefined => {
  if (step === undefined) return operand
  if (isList(value)) {
    const position = step === "-" ? value.length : Number(step)
    const last = edit === "add" && rest.length === 0 ? value.length : value.length - 1
    if (!Number.isInteger(position) || position < 0 || position > last) return undefined
    if (rest.length === 0 && edit === "add") return value.toSpliced(position, 0, operand)
    if (rest.length === 0 && edit === "remove") return value.toSpliced(position, 1)
    const inner = edited(value[position], rest, edit, operand)
    return inner === undefined ? undefined : value.with(position, inner)
  }
  if (!isObject(value) || (!Object.hasOwn(value, step) && !(edit === "add" && rest.length === 0))) return undefined
  if (rest.length === 0) return put(value, [step], edit === "remove" ? undefined : operand)
  const inner = edited(value[step], rest, edit, operand)
  return inner === undefined ? undefined : put(value, [step], inner)
}

/** RFC 6902. 422 if an operation cannot be applied, as in Kubernetes. */
const jsonPatch = Effect.fnUntraced(function* (object: JsonObject, patch: Json): Effect.fn.Return<JsonObject, KubeStatus> {
  if (!isList(patch)) return yield* KubeStatus.badRequest("a JSON patch is a list of operations")
  let value: Json = object
  for (const operation of patch) {
    const op = textAt(operation, "op")
    const path = textAt(operation, "path")
    const from = textAt(operation, "from")
    const refused = new KubeStatus({
      code: 422,
      reason: "Invalid",
      message: `the server rejected our request due to an error in our request: ${op} operation does not apply: ${path}`
    })
    if (op === "test") {
      if (!equal(lookUp(value, pointer(path)) ?? null, at(operation, "value") ?? null)) return yield* refused
      continue
    }
    const operand: Json | undefined = op === "move" || op === "copy" ? lookUp(value, pointer(from)) : op === "remove" ? null : at(operation, "value")
    const source: Json | undefined = op === "move" ? edited(value, pointer(from), "remove", null) : value
    if (operand === undefined || !["add", "replace", "remove", "move", "copy"].includes(op)) return yield* refused
    const next: Json | undefined = edited(source, pointer(path), op === "replace" || op === "remove" ? op : "add", operand)
    if (next === undefined) return yield* refused
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
