import { at, fieldsAt, type Json, type JsonObject, listAt } from "./Json.ts"
import type { Kind } from "./Kind.ts"

/**
 * How the elements of a list are identified: by the values of key fields, by themselves, or not at all (the list is one
 * value).
 */
type ListType = { readonly keys: ReadonlyArray<string> } | "set" | "atomic"

/** What merging must know about a field of an object. */
export interface Shape {
  readonly list: ListType
  /** Whether this map is one value. */
  readonly atomicMap: boolean
  readonly field: (name: string) => Shape
  readonly item: () => Shape
}

/** The keyed lists of the built-in kinds, by field name. The keys of ports differ between pods and services. */
const keyed: Readonly<Record<string, ReadonlyArray<string>>> = {
  containers: ["name"],
  initContainers: ["name"],
  ephemeralContainers: ["name"],
  env: ["name"],
  volumes: ["name"],
  volumeMounts: ["mountPath"],
  volumeDevices: ["devicePath"],
  imagePullSecrets: ["name"],
  secrets: ["name"],
  resourceClaims: ["name"],
  conditions: ["type"],
  addresses: ["type"],
  hostAliases: ["ip"],
  podIPs: ["ip"],
  hostIPs: ["ip"],
  topologySpreadConstraints: ["topologyKey", "whenUnsatisfiable"],
  ownerReferences: ["uid"]
}
/** Lists that are keyed in strategic merge patches only. Server-side apply treats them as one value. */
const keyedInPatches: Readonly<Record<string, ReadonlyArray<string>>> = { taints: ["key"] }
const atomicMaps = new Set(["selector", "nodeSelector", "secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "involvedObject", "regarding"])
const schemaLists = new Set(["properties", "versions"])

const builtIn = (group: string, name: string, parent: string): Shape => ({
  list:
    name === "finalizers"
      ? "set"
      : name === "ports"
        ? { keys: [parent === "" ? "containerPort" : "port", "protocol"] }
        : keyed[name] === undefined || schemaLists.has(name)
          ? "atomic"
          : { keys: keyed[name] },
  atomicMap: atomicMaps.has(name),
  field: (child) => builtIn(group, child, name),
  item: () => builtIn(group, "", "")
})

const structural = (schema: JsonObject): Shape => {
  const type = schema["x-kubernetes-list-type"]
  return {
    list: type === "map" ? { keys: listAt(schema, "x-kubernetes-list-map-keys").filter((key) => typeof key === "string") } : type === "set" ? "set" : "atomic",
    atomicMap: schema["x-kubernetes-map-type"] === "atomic",
    field: (name) => structural(fieldsAt({ field: at(schema, "properties", name) ?? schema.additionalProperties ?? {} }, "field")),
    item: () => structural(fieldsAt(schema, "items"))
  }
}

export const shapeOf = (kind: Kind): Shape => {
  const core = builtIn(kind.group, "", "object")
  const own = kind.custom ? structural(kind.schema ?? {}) : core
  return { list: "atomic", atomicMap: false, item: () => own, field: (name) => (name === "metadata" ? core.field("metadata") : own.field(name)) }
}

/** The merge keys of a built-in list in a strategic merge patch; `undefined`: the list is replaced. */
export const patchKey = (name: string, parent: string): string | undefined =>
  name === "ports" ? (parent === "" ? "containerPort" : "port") : (keyed[name] ?? keyedInPatches[name])?.[0]

/** The key fields of an element. A port without a protocol is a TCP port. */
export const identity = (keys: ReadonlyArray<string>, item: Json): JsonObject =>
  Object.fromEntries(keys.toSorted().map((key) => [key, at(item, key) ?? (key === "protocol" ? "TCP" : null)]))
