import { at, equal, fieldsAt, isList, isObject, type Json, type JsonObject, listAt, put, textAt, without } from "./Json.ts"
import { hasStatus, type Kind } from "./Kind.ts"
import { identity, type Shape, shapeOf } from "./ListShape.ts"

/** The writer of a change, as an entry of `managedFields` identifies it. */
export interface Writer {
  readonly manager: string
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string
}

/** An entry of `managedFields` with its fields as a set of paths. */
export interface Owner extends Writer {
  readonly operation: "Apply" | "Update"
  readonly fields: ReadonlySet<string>
}

// The terminator after each element of a path. Elements have the form of `fieldsV1` (`f:NAME`, `k:{KEYS}`, `v:VALUE`).
const end = "\u0000"
export const elements = (path: string): ReadonlyArray<string> => path.split(end).slice(0, -1)
export const pathOf = (steps: ReadonlyArray<string>): string => steps.map((step) => `${step}${end}`).join("")

const decoded = (fields: Json | undefined, prefix = ""): ReadonlyArray<string> =>
  Object.entries(isObject(fields) ? fields : {}).flatMap(([step, inner]) => {
    if (step === ".") return [prefix]
    const path = `${prefix}${step}${end}`
    return isObject(inner) && Object.keys(inner).length > 0 ? decoded(inner, path) : [path]
  })

const encoded = (fields: ReadonlySet<string>): JsonObject => {
  let tree: JsonObject = {}
  for (const path of [...fields].sort()) tree = put(tree, elements(path), fieldsAt(tree, ...elements(path)))
  // An owned field with owned fields inside it has a `.` entry.
  for (const path of fields) {
    const value = at(tree, ...elements(path))
    if (isObject(value) && Object.keys(value).length > 0) tree = put(tree, [...elements(path), "."], {})
  }
  return tree
}

export const ownersOf = (managed: Json | undefined): ReadonlyArray<Owner> =>
  (isList(managed) ? managed : []).flatMap((entry) =>
    textAt(entry, "manager") === ""
      ? []
      : [
          {
            manager: textAt(entry, "manager"),
            operation: textAt(entry, "operation") === "Apply" ? ("Apply" as const) : ("Update" as const),
            apiVersion: textAt(entry, "apiVersion"),
            subresource: textAt(entry, "subresource"),
            time: textAt(entry, "time"),
            fields: new Set(decoded(at(entry, "fieldsV1")))
          }
        ]
  )

export const managedFields = (owners: ReadonlyArray<Owner>): Json =>
  owners
    .filter(({ fields }) => fields.size > 0)
    .map(({ apiVersion, fields, manager, operation, subresource, time }) => ({
      manager,
      operation,
      apiVersion,
      time,
      fieldsType: "FieldsV1",
      fieldsV1: encoded(fields),
      ...(subresource === "" ? {} : { subresource })
    }))

const serverOwned = [
  "name",
  "namespace",
  "uid",
  "creationTimestamp",
  "resourceVersion",
  "generation",
  "managedFields",
  "selfLink",
  "deletionTimestamp",
  "deletionGracePeriodSeconds"
]

/** The part of an object whose fields can be owned through a subresource. */
export const ownable = (kind: Kind, object: JsonObject, subresource: string): JsonObject => {
  if (subresource === "status") return object.status === undefined ? {} : { status: object.status }
  const metadata = without(fieldsAt(object, "metadata"), ...serverOwned)
  const rest = without(object, "apiVersion", "kind", "metadata", ...(hasStatus(kind) ? ["status"] : []))
  return Object.keys(metadata).length === 0 ? rest : { ...rest, metadata }
}

/** The paths of everything that a value sets. */
export const fieldSet = (shape: Shape, value: Json, prefix = ""): ReadonlyArray<string> => {
  if (isObject(value) && !shape.atomicMap && (Object.keys(value).length > 0 || prefix === "")) {
    return Object.entries(value).flatMap(([name, inner]) => fieldSet(shape.field(name), inner, `${prefix}f:${name}${end}`))
  }
  if (isList(value) && shape.list !== "atomic" && value.length > 0) {
    const { list } = shape
    if (list === "set") return value.map((item) => `${prefix}v:${JSON.stringify(item)}${end}`)
    return value.flatMap((item) => {
      const path = `${prefix}k:${JSON.stringify(identity(list.keys, item))}${end}`
      return [path, ...fieldSet(shape.item(), item, path)]
    })
  }
  return [prefix]
}

const isItem = (step: string, item: Json): boolean => {
  const wanted: Json = JSON.parse(step.slice(2))
  return step.startsWith("v:") ? equal(wanted, item) : isObject(wanted) && equal(wanted, identity(Object.keys(wanted), item))
}

const valueAt = (value: Json | undefined, [step, ...rest]: ReadonlyArray<string>): Json | undefined => {
  if (step === undefined) return value
  if (step.startsWith("f:")) return valueAt(at(value, step.slice(2)), rest)
  return isList(value)
    ? valueAt(
        value.find((item) => isItem(step, item)),
        rest
      )
    : undefined
}

/** Removes the field at a path, and parents that become empty unless `keeps` retains them. */
export const removeAt = (value: Json, [step, ...rest]: ReadonlyArray<string>, keeps: (path: string) => boolean, prefix = ""): Json | undefined => {
  if (step === undefined) return undefined
  const currentPath = `${prefix}${step}${end}`
  const left = (inner: Json): Json | undefined => {
    const result = removeAt(inner, rest, keeps, currentPath)
    const empty = (isObject(result) && Object.keys(result).length === 0) || (isList(result) && result.length === 0)
    return empty && !keeps(currentPath) ? undefined : result
  }
  if (isObject(value) && step.startsWith("f:")) {
    const name = step.slice(2)
    const inner = value[name]
    return inner === undefined ? value : put(value, [name], left(inner))
  }
  if (isList(value)) return value.flatMap((item) => (isItem(step, item) ? (left(item) ?? []) : [item]))
  return value
}

const isItemPath = (path: string): boolean => elements(path).at(-1)?.startsWith("k:") === true

export const sameWriter = (owner: Owner, { apiVersion, manager, subresource }: Writer, operation: Owner["operation"]): boolean =>
  owner.manager === manager && owner.operation === operation && owner.subresource === subresource && owner.apiVersion === apiVersion

/** Whether the value of a path differs between two objects. For an element of a list its content is not compared. */
export const differs = (path: string, a: JsonObject, b: JsonObject): boolean =>
  !isItemPath(path) && !equal(valueAt(a, elements(path)), valueAt(b, elements(path)))

/**
 * The managed fields after a write that is not an apply. The writer becomes the only owner of every field that it
 * changes.
 */
export const afterUpdate = (kind: Kind, before: JsonObject | undefined, after: JsonObject, writer: Writer): Json => {
  const shape = shapeOf(kind)
  const was = before === undefined ? {} : ownable(kind, before, writer.subresource)
  const is = ownable(kind, after, writer.subresource)
  const old = new Set(fieldSet(shape, was))
  const now = fieldSet(shape, is)
  const changed = new Set(now.filter((path) => !old.has(path) || differs(path, was, is)))
  const present = new Set(now)
  const removed = new Set([...old].filter((path) => !present.has(path)))
  const managed = listAt(before, "metadata", "managedFields")
  if (changed.size === 0 && removed.size === 0) return managed
  const owners = ownersOf(managed)
  const mine = owners.find((owner) => sameWriter(owner, writer, "Update"))
  const fields = new Set([...(mine?.fields ?? []), ...changed].filter((path) => !removed.has(path)))
  const otherOwners = owners
    .filter((owner) => owner !== mine)
    .map((owner): Owner => ({ ...owner, fields: new Set([...owner.fields].filter((path) => !removed.has(path) && (!changed.has(path) || isItemPath(path)))) }))
  return managedFields([...otherOwners, { ...writer, operation: "Update", fields }])
}
