import { at, equal, fieldsAt, isList, isObject, type Json, type JsonObject, listAt, put, textAt, without } from "./Json.ts"
import { hasStatus, type Kind } from "./Kind.ts"
import type { Cause } from "./KubeStatus.ts"
import { pruned, violations, withDefaults } from "./StructuralSchema.ts"

/** The result of admission: the object, and everything that is wrong with it. */
interface Admitted {
  readonly object: JsonObject
  readonly unknown: ReadonlyArray<string>
  readonly causes: ReadonlyArray<Cause>
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const qualifiedName = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/

const metadataCauses = (object: JsonObject): ReadonlyArray<Cause> => {
  const name = textAt(object, "metadata", "name")
  const causes: Array<Cause> = []
  if (name.length > 253 || !subdomain.test(name)) {
    causes.push({
      reason: "FieldValueInvalid",
      field: "metadata.name",
      message: `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
    })
  }
  for (const value of Object.values(fieldsAt(object, "metadata", "labels"))) {
    if (typeof value === "string" && value.length <= 63 && labelValue.test(value)) continue
    causes.push({
      reason: "FieldValueInvalid",
      field: "metadata.labels",
      message: `Invalid value: ${JSON.stringify(value)}: a valid label must be an empty string or consist of at most 63 alphanumeric characters, '-', '_' or '.'`
    })
  }
  for (const finalizer of listAt(object, "metadata", "finalizers")) {
    if (typeof finalizer === "string" && qualifiedName.test(finalizer)) continue
    causes.push({
      reason: "FieldValueInvalid",
      field: "metadata.finalizers",
      message: `Invalid value: ${JSON.stringify(finalizer)}: name part must consist of alphanumeric characters, '-', '_' or '.'`
    })
  }
  return causes
}

const orElse = (object: JsonObject, defaults: JsonObject): JsonObject => ({ ...defaults, ...object })

/** A resource with a limit but no request is requested at its limit. */
const resourcesOf = (container: JsonObject): JsonObject => {
  const limits = fieldsAt(container, "resources", "limits")
  if (Object.keys(limits).length === 0) return fieldsAt(container, "resources")
  return { ...fieldsAt(container, "resources"), requests: orElse(fieldsAt(container, "resources", "requests"), limits) }
}

const containersOf = (spec: JsonObject): JsonObject => {
  const filled = (list: Json | undefined) =>
    isList(list)
      ? list.map((one) =>
          isObject(one)
            ? orElse(
                {
                  ...one,
                  resources: resourcesOf(one),
                  ...(isList(one.ports) ? { ports: one.ports.map((port) => (isObject(port) ? orElse(port, { protocol: "TCP" }) : port)) } : {})
                },
                { imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" }
              )
            : one
        )
      : list
  const containers = filled(spec.containers)
  const before = filled(spec.initContainers)
  return { ...spec, ...(containers === undefined ? {} : { containers }), ...(before === undefined ? {} : { initContainers: before }) }
}

const podSpec = (spec: JsonObject, restartPolicy: string | undefined): JsonObject =>
  orElse(containersOf(spec), {
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    securityContext: {}
  })

const required = (field: string): Cause => ({ reason: "FieldValueRequired", field, message: "Required value" })

const podCauses = (spec: JsonObject, path: string): ReadonlyArray<Cause> => [
  ...(listAt(spec, "containers").length === 0 ? [required(`${path}.containers`)] : []),
  ...listAt(spec, "containers").flatMap((one, position) => [
    ...(textAt(one, "name") === "" ? [required(`${path}.containers[${position}].name`)] : []),
    ...(textAt(one, "image") === "" ? [required(`${path}.containers[${position}].image`)] : [])
  ])
]

const base64 = (text: Json): string => Buffer.from(typeof text === "string" ? text : JSON.stringify(text)).toString("base64")

/** The defaults that clients rely on. Called for new and changed objects before the status is restored. */
const builtInDefaults = (kind: Kind, object: JsonObject): JsonObject => {
  const spec = fieldsAt(object, "spec")
  switch (kind.kind) {
    case "Pod":
      return { ...object, spec: podSpec(spec, "Always") }
    case "Job": {
      const uid = textAt(object, "metadata", "uid")
      const name = textAt(object, "metadata", "name")
      const owned = { "batch.kubernetes.io/controller-uid": uid, "controller-uid": uid, "batch.kubernetes.io/job-name": name, "job-name": name }
      const template = fieldsAt(spec, "template")
      const labels = { ...fieldsAt(template, "metadata", "labels"), ...owned }
      return {
        ...object,
        spec: orElse(
          {
            ...spec,
            selector: { matchLabels: { "batch.kubernetes.io/controller-uid": uid } },
            template: { ...put(template, ["metadata", "labels"], labels), spec: podSpec(fieldsAt(template, "spec"), undefined) }
          },
          {
            parallelism: 1,
            completions: 1,
            backoffLimit: 6,
            completionMode: "NonIndexed",
            suspend: false,
            manualSelector: false,
            podReplacementPolicy: "TerminatingOrFailed"
          }
        )
      }
    }
    case "Secret": {
      const written = Object.entries(fieldsAt(object, "stringData")).map(([name, text]) => [name, base64(text)] as const)
      const data = { ...fieldsAt(object, "data"), ...Object.fromEntries(written) }
      return { ...orElse(without(object, "stringData"), { type: "Opaque" }), ...(Object.keys(data).length === 0 ? {} : { data }) }
    }
    case "Service":
      // No address is allocated, because nothing would route it. Clients reach pods by their own addresses.
      return {
        ...object,
        spec: orElse(spec, { type: "ClusterIP", clusterIP: "None", clusterIPs: ["None"], sessionAffinity: "None", internalTrafficPolicy: "Cluster" })
      }
    case "Namespace":
      return {
        ...put(object, ["metadata", "labels", "kubernetes.io/metadata.name"], textAt(object, "metadata", "name")),
        spec: orElse(spec, { finalizers: ["kubernetes"] })
      }
    case "PersistentVolumeClaim":
      return { ...object, spec: orElse(spec, { volumeMode: "Filesystem" }) }
    case "CustomResourceDefinition": {
      const names = fieldsAt(spec, "names")
      const completeNames = orElse(names, { singular: textAt(names, "kind").toLowerCase(), listKind: `${textAt(names, "kind")}List` })
      return { ...object, spec: orElse({ ...spec, names: completeNames }, { conversion: { strategy: "None" } }) }
    }
    default:
      return object
  }
}

const definitionCauses = (object: JsonObject): ReadonlyArray<Cause> => {
  const name = `${textAt(object, "spec", "names", "plural")}.${textAt(object, "spec", "group")}`
  const versions = listAt(object, "spec", "versions")
  return [
    ...["group", "scope"].filter((field) => textAt(object, "spec", field) === "").map((field) => required(`spec.${field}`)),
    ...["plural", "kind"].filter((field) => textAt(object, "spec", "names", field) === "").map((field) => required(`spec.names.${field}`)),
    ...(textAt(object, "metadata", "name") === name
      ? []
      : [
          {
            reason: "FieldValueInvalid",
            field: "metadata.name",
            message: `Invalid value: "${textAt(object, "metadata", "name")}": must be spec.names.plural+"."+spec.group`
          }
        ]),
    ...(versions.filter((version) => at(version, "storage") === true).length === 1
      ? []
      : [{ reason: "FieldValueInvalid", field: "spec.versions", message: "Invalid value: must have exactly one version marked as storage version" }]),
    ...versions.flatMap((version, position) =>
      isObject(at(version, "schema", "openAPIV3Schema")) ? [] : [required(`spec.versions[${position}].schema.openAPIV3Schema`)]
    )
  ]
}

/** An event must be in the namespace of its object, or in `default` if the object has none. */
const eventCauses = (object: JsonObject): ReadonlyArray<Cause> => {
  const involved = textAt(object, "involvedObject", "namespace")
  return textAt(object, "metadata", "namespace") === (involved || "default")
    ? []
    : [{ reason: "FieldValueInvalid", field: "involvedObject.namespace", message: `Invalid value: "${involved}": does not match event.namespace` }]
}

const builtInCauses = (kind: Kind, object: JsonObject): ReadonlyArray<Cause> => {
  if (kind.kind === "Pod") return podCauses(fieldsAt(object, "spec"), "spec")
  if (kind.kind === "CustomResourceDefinition") return definitionCauses(object)
  if (kind.kind === "Event") return eventCauses(object)
  if (kind.kind !== "Job") return []
  const policy = textAt(object, "spec", "template", "spec", "restartPolicy")
  return [
    ...podCauses(fieldsAt(object, "spec", "template", "spec"), "spec.template.spec"),
    ...(policy === "Never" || policy === "OnFailure"
      ? []
      : [
          {
            reason: "FieldValueNotSupported",
            field: "spec.template.spec.restartPolicy",
            message: `Unsupported value: "${policy}": supported values: "OnFailure", "Never"`
          }
        ])
  ]
}

/** Applies defaults and pruning to an object and validates it. */
export const admit = (kind: Kind, object: JsonObject): Admitted => {
  const unknown: Array<string> = []
  if (!kind.custom) {
    const filled = builtInDefaults(kind, object)
    return { object: filled, unknown, causes: [...metadataCauses(filled), ...builtInCauses(kind, filled)] }
  }
  const schema = kind.schema ?? { "x-kubernetes-preserve-unknown-fields": true }
  const { apiVersion = "", kind: name = "", metadata = {} } = object
  const filled = withDefaults(schema, without(object, "metadata"))
  const known = pruned({ ...schema, properties: { ...fieldsAt(schema, "properties"), apiVersion: {}, kind: {} } }, filled, "", (path) => unknown.push(path))
  const admitted = { ...(isObject(known) ? known : {}), apiVersion, kind: name, metadata }
  return {
    object: admitted,
    unknown,
    causes: [
      ...metadataCauses(admitted),
      ...violations({ ...schema, properties: without(fieldsAt(schema, "properties"), "metadata") }, without(admitted, "metadata"), "")
    ]
  }
}

/** The initial status of new objects of built-in kinds. */
type FirstStatus = (object: JsonObject, time: string) => Json | undefined
const firstStatuses: ReadonlyMap<string, FirstStatus> = new Map<string, FirstStatus>([
  ["Pod", () => ({ phase: "Pending", qosClass: "Burstable" })],
  ["Namespace", () => ({ phase: "Active" })],
  ["PersistentVolumeClaim", () => ({ phase: "Pending" })],
  ["CustomResourceDefinition", (object, time) => definitionStatus(object, time)],
  // A kubelet registers its node with a status.
  ["Node", (object) => object.status]
])

/** The initial status of a new object. */
export const firstStatus = (kind: Kind, object: JsonObject, time: string): Json | undefined => {
  if (kind.custom) return hasStatus(kind) ? undefined : object.status
  const first = firstStatuses.get(kind.kind)
  if (first !== undefined) return first(object, time)
  return hasStatus(kind) ? {} : object.status
}

/** A definition is served as soon as it is stored. */
const definitionStatus = (definition: JsonObject, time: string): Json => ({
  acceptedNames: fieldsAt(definition, "spec", "names"),
  conditions: [
    { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found", lastTransitionTime: time },
    { type: "Established", status: "True", reason: "InitialNamesAccepted", message: "the initial names have been accepted", lastTransitionTime: time }
  ],
  storedVersions: listAt(definition, "spec", "versions").flatMap((version) => (at(version, "storage") === true ? [textAt(version, "name")] : []))
})

const immutable = (field: string): Cause => ({ reason: "FieldValueInvalid", field, message: "Invalid value: field is immutable" })

const podFixed = (spec: JsonObject): JsonObject => {
  const images = (list: ReadonlyArray<Json>) => list.map((one) => (isObject(one) ? without(one, "image") : one))
  return {
    ...without(spec, "activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"),
    containers: images(listAt(spec, "containers")),
    initContainers: images(listAt(spec, "initContainers"))
  }
}

const podChanges = (was: JsonObject, is: JsonObject): ReadonlyArray<Cause> =>
  equal(podFixed(was), podFixed(is))
    ? []
    : [
        {
          reason: "FieldValueForbidden",
          field: "spec",
          message:
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
        }
      ]

const jobChanges = (was: JsonObject, is: JsonObject): ReadonlyArray<Cause> =>
  ["selector", "template", "completions", "completionMode"].filter((name) => !equal(was[name], is[name])).map((name) => immutable(`spec.${name}`))

const dataChanges = (before: JsonObject, after: JsonObject): ReadonlyArray<Cause> =>
  before.immutable === true && !equal(before.data, after.data) ? [immutable("data")] : []

const typeChanges = (before: JsonObject, after: JsonObject): ReadonlyArray<Cause> => (equal(before.type, after.type) ? [] : [immutable("type")])

/** Changes to immutable fields. */
export const fixedCauses = (kind: Kind, before: JsonObject, after: JsonObject): ReadonlyArray<Cause> => {
  const [was, is] = [fieldsAt(before, "spec"), fieldsAt(after, "spec")]
  if (kind.kind === "Job" && kind.group === "batch") return jobChanges(was, is)
  if (kind.custom) return []
  if (kind.kind === "Pod") return podChanges(was, is)
  if (kind.kind === "ConfigMap") return dataChanges(before, after)
  return kind.kind === "Secret" ? [...dataChanges(before, after), ...typeChanges(before, after)] : []
}
