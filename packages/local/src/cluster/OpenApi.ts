import { createHash } from "node:crypto"
import { fieldsAt, type JsonObject } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"

const groupVersionKind = ({ group, kind, version }: Kind): JsonObject => ({ group, kind, version })

const schemaName = ({ group, kind, version }: Kind): string => {
  const [first = "core"] = group.split(".")
  return group === "" || !group.includes(".") || group.endsWith(".k8s.io")
    ? `io.k8s.api.${first === "" ? "core" : first}.${version}.${kind}`
    : `${group.split(".").reverse().join(".")}.${version}.${kind}`
}

const common: JsonObject = {
  apiVersion: { type: "string", description: "The version of the schema that this object follows." },
  kind: { type: "string", description: "What kind of object this is." },
  metadata: { type: "object", description: "Standard object metadata.", "x-kubernetes-preserve-unknown-fields": true }
}

const anything: JsonObject = { type: "object", "x-kubernetes-preserve-unknown-fields": true }

/** The schema of a custom kind. Built-in kinds have an open schema, because the real schemas have a megabyte. */
const schemaOf = (kind: Kind): JsonObject => {
  const own = kind.schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { spec: anything, status: anything } }
  return { ...own, properties: { ...fieldsAt(own, "properties"), ...common }, "x-kubernetes-group-version-kind": [groupVersionKind(kind)] }
}

const query = (name: string): JsonObject => ({ name, in: "query", schema: { type: "string", uniqueItems: true } })

const pathsOf = (kind: Kind): JsonObject => {
  const root = `/${kind.group === "" ? "api" : "apis"}/${apiVersionOf(kind)}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`
  const operation = (action: string, ...parameters: ReadonlyArray<string>): JsonObject => ({
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": groupVersionKind(kind),
    parameters: parameters.map(query),
    responses: { 200: { description: "OK", content: { "application/json": { schema: { $ref: `#/components/schemas/${schemaName(kind)}` } } } } }
  })
  const writing = ["dryRun", "fieldManager", "fieldValidation"]
  return {
    [root]: { get: operation("list", "labelSelector", "fieldSelector", "limit", "continue", "watch"), post: operation("post", ...writing) },
    [`${root}/{name}`]: {
      get: operation("get"),
      put: operation("put", ...writing),
      patch: operation("patch", ...writing, "force"),
      delete: operation("delete", "dryRun", "gracePeriodSeconds", "propagationPolicy")
    }
  }
}

const groupPath = (kind: Kind): string => `${kind.group === "" ? "api" : "apis"}/${apiVersionOf(kind)}`

const merged = (objects: ReadonlyArray<JsonObject>): JsonObject => Object.assign({}, ...objects)

const schemas = (kinds: ReadonlyArray<Kind>): JsonObject => merged(kinds.map((kind) => ({ [schemaName(kind)]: schemaOf(kind) })))

/**
 * The index of the OpenAPI v3 documents, or the document of one group and version. `prefix`: the text before the API's
 * paths.
 */
export const openApiV3 = (path: ReadonlyArray<string>, kinds: ReadonlyArray<Kind>, prefix: string): JsonObject | undefined => {
  if (path.length === 0) {
    const groups = [...new Set(kinds.map(groupPath))]
    const entry = (group: string): JsonObject => {
      const served = kinds.filter((kind) => groupPath(kind) === group)
      const hash = createHash("sha256")
        .update(JSON.stringify(schemas(served)))
        .digest("hex")
        .slice(0, 32)
      return { [group]: { serverRelativeURL: `${prefix}/openapi/v3/${group}?hash=${hash}` } }
    }
    return { paths: merged(groups.map(entry)) }
  }
  const served = kinds.filter((kind) => groupPath(kind) === path.join("/"))
  if (served.length === 0) return undefined
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.37.0" },
    paths: merged(served.map(pathsOf)),
    components: { schemas: schemas(served) }
  }
}

/** One document for all kinds, for older clients. */
export const openApiV2 = (kinds: ReadonlyArray<Kind>): JsonObject => ({
  swagger: "2.0",
  info: { title: "Kubernetes", version: "v1.37.0" },
  paths: {},
  definitions: schemas(kinds)
})
