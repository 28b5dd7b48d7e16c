import type { Json, JsonObject } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"

/** The version for `kubectl version` and clients that check features. */
export const version: JsonObject = {
  major: "1",
  minor: "37",
  gitVersion: "v1.37.0",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "2026-08-26T00:00:00Z",
  goVersion: "none",
  compiler: "none",
  platform: "linux/amd64"
}

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]

const subresourceOf = (kind: Kind, name: string): JsonObject => ({
  name: `${kind.plural}/${name}`,
  singularName: "",
  namespaced: kind.namespaced,
  ...(name === "scale" ? { group: "autoscaling", version: "v1" } : {}),
  kind: name === "binding" ? "Binding" : name === "scale" ? "Scale" : kind.kind,
  verbs: name === "status" || name === "scale" ? ["get", "patch", "update"] : name === "binding" ? ["create"] : ["get"]
})

const resourcesOf = (kind: Kind): ReadonlyArray<JsonObject> => [
  {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs,
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {})
  },
  ...kind.subresources.map((name) => subresourceOf(kind, name))
]

const resourceList = (groupVersion: string, kinds: ReadonlyArray<Kind>): JsonObject => ({
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion,
  resources: kinds.flatMap(resourcesOf)
})

/** Newer versions first: v2, v1, v1beta2, v1beta1, v1alpha1. */
const priority = (name: string): number => {
  const [, major = "0", stage, minor = "0"] = /^v(\d+)(alpha|beta)?(\d+)?$/.exec(name) ?? []
  return Number(major) + (stage === undefined ? 2_000 : stage === "beta" ? 1_000 : 0) + Number(minor) / 100
}

const groupOf = (name: string, kinds: ReadonlyArray<Kind>): JsonObject => {
  const names = [...new Set(kinds.filter(({ group }) => group === name).map((kind) => kind.version))].sort((a, b) => priority(b) - priority(a))
  const versions = names.map((one) => ({ groupVersion: apiVersionOf({ group: name, version: one }), version: one }))
  const [preferred] = versions
  return { name, versions, ...(preferred === undefined ? {} : { preferredVersion: preferred }) }
}

const nonResource = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]

/** The document of the core group: its versions, or the resources of one. */
const coreDocument = (kinds: ReadonlyArray<Kind>, version: string | undefined): Json | undefined => {
  if (version === undefined) return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] }
  const core = kinds.filter((kind) => kind.group === "" && kind.version === version)
  return core.length > 0 ? resourceList(version, core) : undefined
}

/** The document of the named groups: their list, one group, or the resources of one version. */
const groupDocument = (kinds: ReadonlyArray<Kind>, groups: ReadonlyArray<string>, group: string | undefined, version: string | undefined): Json | undefined => {
  if (group === undefined) return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map((name) => groupOf(name, kinds)) }
  if (!groups.includes(group)) return undefined
  if (version === undefined) return { kind: "APIGroup", apiVersion: "v1", ...groupOf(group, kinds) }
  const served = kinds.filter((kind) => kind.group === group && kind.version === version)
  return served.length > 0 ? resourceList(`${group}/${version}`, served) : undefined
}

/** The discovery document at a path; undefined if there is none. */
export const discovery = (path: ReadonlyArray<string>, kinds: ReadonlyArray<Kind>): Json | undefined => {
  const [root, first, second, ...more] = path
  const groups = [...new Set(kinds.map((kind) => kind.group))].filter((name) => name !== "")
  if (root === undefined) return { paths: [...nonResource, ...groups.map((name) => `/apis/${name}`)].sort() }
  if (more.length > 0) return undefined
  if (root === "api") return second === undefined ? coreDocument(kinds, first) : undefined
  return root === "apis" ? groupDocument(kinds, groups, first, second) : undefined
}
