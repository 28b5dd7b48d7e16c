import { Effect } from "effect"
import { differs, elements, fieldSet, managedFields, type Owner, ownable, ownersOf, pathOf, removeAt, sameWriter, type Writer } from "./FieldOwnership.ts"
import { at, equal, isList, isObject, type Json, type JsonObject, put, textAt } from "./Json.ts"
import type { Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { identity, type Shape, shapeOf } from "./ListShape.ts"

/**
 * Merges applied elements of a keyed list into live ones. The result has the applied order. Elements of other owners
 * keep their position before the next applied element.
 */
const overlaidList = (shape: Shape, keys: ReadonlyArray<string>, live: ReadonlyArray<Json>, applied: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const isSame = (one: Json, other: Json) => equal(identity(keys, one), identity(keys, other))
  const merged: Array<Json> = []
  const isMerged = (one: Json) => merged.some((other) => isSame(one, other))
  let position = 0
  for (const item of applied) {
    while (position < live.length) {
      const next = live[position] ?? null
      if (isSame(next, item)) position++
      if (isSame(next, item) || (applied.some((one) => isSame(one, next)) && !isMerged(next))) break
      if (!isMerged(next)) merged.push(next)
      position++
    }
    const before = live.find((one) => isSame(one, item))
    merged.push(overlaid(shape.item(), before, item))
  }
  return [...merged, ...live.slice(position).filter((one) => !isMerged(one))]
}

/** Merges applied fields into live ones. Elements of keyed lists are matched by their keys. */
const overlaid = (shape: Shape, live: Json | undefined, applied: Json): Json => {
  if (isObject(applied) && isObject(live) && !shape.atomicMap) {
    return Object.entries(applied).reduce<JsonObject>((object, [name, value]) => put(object, [name], overlaid(shape.field(name), object[name], value)), live)
  }
  const { list } = shape
  if (!isList(applied) || !isList(live) || list === "atomic") return applied
  return list === "set" ? [...live, ...applied.filter((item) => !live.some((one) => equal(one, item)))] : overlaidList(shape, list.keys, live, applied)
}

/** Formats a path as `.spec.containers[name="a"].image`. */
const shownPath = (path: string): string =>
  elements(path)
    .map((step) => {
      const rest = step.slice(2)
      if (step.startsWith("f:")) return `.${rest}`
      const keys: Json = JSON.parse(rest)
      return isObject(keys)
        ? `[${Object.entries(keys)
            .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
            .join(",")}]`
        : `[=${rest}]`
    })
    .join("")

const parentOf = (path: string): string => pathOf(elements(path).slice(0, -1))

const isKey = (path: string): boolean => {
  const [item = "", field = ""] = elements(path).slice(-2)
  return item.startsWith("k:") && Object.hasOwn(JSON.parse(item.slice(2)), field.slice(2))
}

interface Clash {
  readonly owner: Owner
  readonly path: string
}

const shownOwner = ({ apiVersion, manager, operation, subresource, time }: Owner): string =>
  `conflict with ${JSON.stringify(manager)}${subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`}${operation === "Apply" ? "" : ` using ${apiVersion}${time === "" ? "" : ` at ${time}`}`}`

const conflict = (clashes: ReadonlyArray<Clash>): KubeStatus => {
  const owners = [...new Set(clashes.map(({ owner }) => shownOwner(owner)))]
  const lines = owners.map((owner) => {
    const paths = clashes.flatMap((clash) => (shownOwner(clash.owner) === owner ? [shownPath(clash.path)] : []))
    return paths.length === 1 ? `${owner}: ${paths[0]}` : `${owner.replace("conflict", "conflicts")}:\n${paths.map((path) => `- ${path}`).join("\n")}`
  })
  const count = clashes.length
  return new KubeStatus({
    code: 409,
    reason: "Conflict",
    message: `Apply failed with ${count} conflict${count === 1 ? "" : "s"}: ${lines.join("\n")}`,
    details: { causes: clashes.map(({ owner, path }) => ({ reason: "FieldManagerConflict", message: shownOwner(owner), field: shownPath(path) })) }
  })
}

/** The fields of an applied configuration that other writers own with other values. */
const clashesOf = (owners: ReadonlyArray<Owner>, fields: ReadonlySet<string>, current: JsonObject, wanted: JsonObject): ReadonlyArray<Clash> =>
  owners.flatMap((owner) => [...fields].filter((path) => owner.fields.has(path) && differs(path, current, wanted)).map((path): Clash => ({ owner, path })))

/** An owner without the fields that it loses. */
const withoutClashes = (owner: Owner, clashes: ReadonlyArray<Clash>): Owner => ({
  ...owner,
  fields: new Set([...owner.fields].filter((path) => !clashes.some((clash) => clash.owner === owner && clash.path === path)))
})

/** Removes fields that the writer applied before and no longer sends, unless a path in `claimed` needs them. */
const withoutDropped = (object: Json, before: ReadonlySet<string>, claimed: ReadonlyArray<string>): Json => {
  const isClaimed = (path: string) => claimed.some((one) => one.startsWith(path))
  // An element of a list is removed before its fields, because they identify it. If the element stays, its keys stay.
  return [...before]
    .filter((path) => !isClaimed(path) && !(isKey(path) && isClaimed(parentOf(path))))
    .sort((a, b) => a.length - b.length)
    .reduce<Json>((left, path) => removeAt(left, elements(path), isClaimed) ?? {}, object)
}

/** Sets the version and the uid that an applied configuration states. */
const withPreconditions = (object: JsonObject, configuration: JsonObject): JsonObject => {
  const resourceVersion = textAt(configuration, "metadata", "resourceVersion")
  const uid = textAt(configuration, "metadata", "uid")
  const versioned = resourceVersion === "" ? object : put(object, ["metadata", "resourceVersion"], resourceVersion)
  return put(versioned, ["metadata", "uid"], uid === "" ? at(object, "metadata", "uid") : uid)
}

/**
 * Server-side apply. The writer owns exactly the fields that it sends. Fields that it sent before and no longer sends
 * are removed unless another writer owns them. A field that another writer owns with another value causes a 409, or
 * changes its owner with `force`.
 */
export const applied = Effect.fnUntraced(function* (
  kind: Kind,
  current: JsonObject,
  configuration: JsonObject,
  writer: Writer,
  force: boolean
): Effect.fn.Return<{ readonly object: JsonObject; readonly managed: Json }, KubeStatus> {
  if (at(configuration, "metadata", "managedFields") !== undefined) return yield* KubeStatus.badRequest("metadata.managedFields must be nil")
  const shape = shapeOf(kind)
  const wanted = ownable(kind, configuration, writer.subresource)
  const fields = new Set(fieldSet(shape, wanted))
  const owners = ownersOf(at(current, "metadata", "managedFields"))
  const mine = owners.find((owner) => sameWriter(owner, writer, "Apply"))
  const otherOwners = owners.filter((owner) => owner !== mine)
  const clashes = clashesOf(otherOwners, fields, current, wanted)
  if (clashes.length > 0 && !force) return yield* conflict(clashes)
  const remaining = otherOwners.map((owner) => withoutClashes(owner, clashes))
  const claimed = [...fields, ...remaining.flatMap((owner) => [...owner.fields])]
  const left = withoutDropped(overlaid(shape, current, wanted), mine?.fields ?? new Set(), claimed)
  const object = isObject(left) ? left : current
  const same = mine !== undefined && equal([...mine.fields].sort(), [...fields].sort()) && equal(object, current)
  const owner: Owner = { ...writer, operation: "Apply", time: same ? mine.time : writer.time, fields }
  const nextOwners = mine === undefined ? [...remaining, owner] : owners.map((one) => (one === mine ? owner : (remaining[otherOwners.indexOf(one)] ?? one)))
  return { object: withPreconditions(object, configuration), managed: managedFields(nextOwners) }
})
