import type { Json, JsonObject } from "./Json.ts"
import { at, isObject, listAt, textAt } from "./Json.ts"
import { jsonPath } from "./jsonPath.ts"

/** One column of `kubectl get`. Columns with a priority above 0 are only shown with `-o wide`. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
  readonly value: (object: JsonObject, now: number) => Json
}

/** The paths of the fields of a scale subresource, such as `.spec.replicas`. */
export interface ScalePaths {
  readonly spec: string
  readonly status: string
  /** Empty if there is none. */
  readonly selector: string
}

/** A resource that the server serves: a built-in one, or one version of a custom resource. */
export interface Kind {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly listKind: string
  readonly namespaced: boolean
  readonly shortNames: ReadonlyArray<string>
  readonly categories: ReadonlyArray<string>
  readonly subresources: ReadonlyArray<string>
  /** Set if `subresources` contains `scale`. */
  readonly scale?: ScalePaths
  /** Columns in addition to Name and Age; undefined: only these two. */
  readonly columns: ReadonlyArray<Column> | undefined
  /** The structural schema of a custom kind. */
  readonly schema: JsonObject | undefined
  readonly custom: boolean
  /** The fields that a field selector may contain, in addition to `metadata.name` and `metadata.namespace`. */
  readonly selectable: ReadonlyArray<string>
  /** The name under which its objects are stored. All versions of a resource share it. */
  readonly stored: string
}

export const apiVersionOf = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === "" ? version : `${group}/${version}`

export const hasStatus = (kind: Kind): boolean => kind.subresources.includes("status")

const builtIn = (
  group: string,
  version: string,
  plural: string,
  kind: string,
  rest: {
    readonly cluster?: boolean
    readonly short?: ReadonlyArray<string>
    readonly sub?: ReadonlyArray<string>
    readonly select?: ReadonlyArray<string>
    readonly all?: boolean
    readonly stored?: string
  } = {}
): Kind => ({
  group,
  version,
  plural,
  singular: kind.toLowerCase(),
  kind,
  listKind: `${kind}List`,
  namespaced: rest.cluster !== true,
  shortNames: rest.short ?? [],
  categories: rest.all === true ? ["all"] : [],
  subresources: rest.sub ?? [],
  columns: undefined,
  schema: undefined,
  custom: false,
  selectable: rest.select ?? [],
  stored: rest.stored ?? `${group}/${plural}`
})

const eventFields = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]

export const builtInKinds: ReadonlyArray<Kind> = [
  builtIn("", "v1", "namespaces", "Namespace", { cluster: true, short: ["ns"], sub: ["status"], select: ["status.phase"] }),
  builtIn("", "v1", "nodes", "Node", { cluster: true, short: ["no"], sub: ["status"], select: ["spec.unschedulable"] }),
  builtIn("", "v1", "pods", "Pod", {
    short: ["po"],
    sub: ["status", "log", "binding"],
    all: true,
    select: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "spec.hostNetwork",
      "status.phase",
      "status.podIP",
      "status.nominatedNodeName"
    ]
  }),
  builtIn("", "v1", "services", "Service", { short: ["svc"], sub: ["status"], all: true, select: ["spec.clusterIP", "spec.type"] }),
  builtIn("", "v1", "secrets", "Secret", { select: ["type"] }),
  builtIn("", "v1", "configmaps", "ConfigMap", { short: ["cm"] }),
  builtIn("", "v1", "events", "Event", {
    short: ["ev"],
    select: [...eventFields.map((name) => `involvedObject.${name}`), "reason", "type", "source", "reportingComponent"]
  }),
  builtIn("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", { short: ["pvc"], sub: ["status"] }),
  builtIn("", "v1", "serviceaccounts", "ServiceAccount", { short: ["sa"] }),
  builtIn("batch", "v1", "jobs", "Job", { sub: ["status"], all: true, select: ["status.successful"] }),
  builtIn("coordination.k8s.io", "v1", "leases", "Lease"),
  builtIn("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", { short: ["pdb"], sub: ["status"] }),
  // The same objects as the core group's events. Their fields are renamed on input and output.
  builtIn("events.k8s.io", "v1", "events", "Event", {
    short: ["ev"],
    select: [...eventFields.map((name) => `regarding.${name}`), "reason", "type", "reportingController"],
    stored: "/events"
  }),
  builtIn("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", { cluster: true, short: ["crd", "crds"], sub: ["status"] })
]

const texts = (value: Json | undefined): ReadonlyArray<string> => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : [])

const customColumns = (version: Json): ReadonlyArray<Column> | undefined => {
  const declared = listAt(version, "additionalPrinterColumns")
  if (declared.length === 0) return undefined
  return declared.map((column) => {
    const find = jsonPath(textAt(column, "jsonPath"))
    const priority = at(column, "priority")
    return {
      name: textAt(column, "name"),
      type: textAt(column, "type"),
      format: textAt(column, "format"),
      description: textAt(column, "description"),
      priority: typeof priority === "number" ? priority : 0,
      value: (object) => find(object) ?? null
    }
  })
}

const scalePathsOf = (version: Json): ScalePaths | undefined => {
  const scale = at(version, "subresources", "scale")
  if (!isObject(scale)) return undefined
  return { spec: textAt(scale, "specReplicasPath"), status: textAt(scale, "statusReplicasPath"), selector: textAt(scale, "labelSelectorPath") }
}

const kindsOfDefinition = new WeakMap<JsonObject, ReadonlyArray<Kind>>()

/** The served kinds of a custom resource definition, one for each served version. */
export const customKinds = (definition: JsonObject): ReadonlyArray<Kind> => {
  const known = kindsOfDefinition.get(definition)
  if (known !== undefined) return known
  const group = textAt(definition, "spec", "group")
  const plural = textAt(definition, "spec", "names", "plural")
  const kind = textAt(definition, "spec", "names", "kind")
  const kinds = listAt(definition, "spec", "versions")
    .filter((version) => at(version, "served") === true)
    .map((version): Kind => {
      const schema = at(version, "schema", "openAPIV3Schema")
      const scale = scalePathsOf(version)
      return {
        group,
        version: textAt(version, "name"),
        plural,
        singular: textAt(definition, "spec", "names", "singular") || kind.toLowerCase(),
        kind,
        listKind: textAt(definition, "spec", "names", "listKind") || `${kind}List`,
        namespaced: textAt(definition, "spec", "scope") === "Namespaced",
        shortNames: texts(at(definition, "spec", "names", "shortNames")),
        categories: texts(at(definition, "spec", "names", "categories")),
        subresources: [...(isObject(at(version, "subresources", "status")) ? ["status"] : []), ...(scale === undefined ? [] : ["scale"])],
        ...(scale === undefined ? {} : { scale }),
        columns: customColumns(version),
        schema: isObject(schema) ? schema : undefined,
        custom: true,
        selectable: listAt(version, "selectableFields").map((field) => textAt(field, "jsonPath").slice(1)),
        stored: `${group}/${plural}`
      }
    })
  kindsOfDefinition.set(definition, kinds)
  return kinds
}
