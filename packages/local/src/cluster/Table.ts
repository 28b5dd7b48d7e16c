import { at, fieldsAt, isObject, type Json, type JsonObject, listAt, put, textAt } from "./Json.ts"
import type { Column, Kind } from "./Kind.ts"
import { stored } from "./present.ts"

/** A duration in kubectl's format: `42s`, `3m20s`, `5h`, `2d4h`, `38d`. */
const age = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const days = Math.floor(hours / 24)
  const pair = (big: number, unit: string, small: number, smaller: string) => `${big}${unit}${small === 0 ? "" : `${small}${smaller}`}`
  if (seconds < 120) return `${seconds}s`
  if (minutes < 10) return pair(minutes, "m", seconds % 60, "s")
  if (minutes < 180) return `${minutes}m`
  if (hours < 8) return pair(hours, "h", minutes % 60, "m")
  if (hours < 48) return `${hours}h`
  if (days < 8) return pair(days, "d", hours % 24, "h")
  return days < 730 ? `${days}d` : `${Math.floor(days / 365)}y`
}

const since = (time: Json | undefined, now: number): Json => {
  const from = typeof time === "string" ? Date.parse(time) : Number.NaN
  return Number.isNaN(from) ? "<unknown>" : age(now - from)
}

type Value = Column["value"]
const column = (name: string, value: Value, priority = 0, type = "string"): Column => ({
  name,
  type,
  format: name === "Name" ? "name" : "",
  description: name,
  priority,
  value
})

const path =
  (...names: ReadonlyArray<string>): Value =>
  (object) =>
    at(object, ...names) ?? "<none>"
const nameColumn = column("Name", path("metadata", "name"))
const ageColumn = column("Age", (object, now) => since(at(object, "metadata", "creationTimestamp"), now))

const podStatus: Value = (pod) => {
  const states = listAt(pod, "status", "containerStatuses")
  const reasons = states.map((one) => textAt(one, "state", "waiting", "reason") || textAt(one, "state", "terminated", "reason"))
  if (at(pod, "metadata", "deletionTimestamp") !== undefined) return textAt(pod, "status", "reason") === "NodeLost" ? "Unknown" : "Terminating"
  return reasons.find((reason) => reason !== "") || textAt(pod, "status", "reason") || textAt(pod, "status", "phase")
}
const sum = (values: ReadonlyArray<Json>, ...names: ReadonlyArray<string>) =>
  values.reduce<number>((total, value) => {
    const one = at(value, ...names)
    return total + (typeof one === "number" ? one : 0)
  }, 0)

const conditions = (object: JsonObject) => listAt(object, "status", "conditions").filter((one) => textAt(one, "status") === "True")

const jobStatus: Value = (job) => {
  const types = conditions(job).map((one) => textAt(one, "type"))
  if (types.includes("Complete")) return "Complete"
  if (types.includes("Failed")) return "Failed"
  if (at(job, "metadata", "deletionTimestamp") !== undefined) return "Terminating"
  return types.includes("Suspended") ? "Suspended" : types.includes("FailureTarget") ? "FailureTarget" : "Running"
}
const jobDuration: Value = (job, now) => {
  const start = Date.parse(textAt(job, "status", "startTime"))
  const end = Date.parse(textAt(job, "status", "completionTime"))
  return Number.isNaN(start) ? "" : age((Number.isNaN(end) ? now : end) - start)
}
const nodeRoles: Value = (node) =>
  Object.keys(fieldsAt(node, "metadata", "labels"))
    .flatMap((label) => (label.startsWith("node-role.kubernetes.io/") ? [label.slice(24)] : []))
    .join(",") || "<none>"
const nodeStatus: Value = (node) => {
  const ready = listAt(node, "status", "conditions").find((one) => textAt(one, "type") === "Ready")
  const state = ready === undefined ? "Unknown" : textAt(ready, "status") === "True" ? "Ready" : "NotReady"
  return at(node, "spec", "unschedulable") === true ? `${state},SchedulingDisabled` : state
}
const containers: Value = (object) =>
  listAt(object, "spec", "containers")
    .map((one) => textAt(one, "name"))
    .join(",")

const builtIn: Readonly<Record<string, ReadonlyArray<Column>>> = {
  pods: [
    nameColumn,
    column(
      "Ready",
      (pod) => `${listAt(pod, "status", "containerStatuses").filter((one) => at(one, "ready") === true).length}/${listAt(pod, "spec", "containers").length}`
    ),
    column("Status", podStatus),
    column("Restarts", (pod) => String(sum(listAt(pod, "status", "containerStatuses"), "restartCount"))),
    ageColumn,
    column("IP", path("status", "podIP"), 1),
    column("Node", path("spec", "nodeName"), 1),
    column("Containers", containers, 1)
  ],
  jobs: [
    nameColumn,
    column("Status", jobStatus),
    column("Completions", (job) => `${at(job, "status", "succeeded") ?? 0}/${at(job, "spec", "completions") ?? 1}`),
    column("Duration", jobDuration),
    ageColumn
  ],
  nodes: [
    nameColumn,
    column("Status", nodeStatus),
    column("Roles", nodeRoles),
    ageColumn,
    column("Version", path("status", "nodeInfo", "kubeletVersion")),
    column(
      "Internal-IP",
      (node) =>
        textAt(
          listAt(node, "status", "addresses").find((one) => textAt(one, "type") === "InternalIP"),
          "address"
        ) || "<none>",
      1
    )
  ],
  namespaces: [nameColumn, column("Status", path("status", "phase")), ageColumn],
  secrets: [nameColumn, column("Type", path("type")), column("Data", (secret) => Object.keys(fieldsAt(secret, "data")).length, 0, "integer"), ageColumn],
  configmaps: [nameColumn, column("Data", (map) => Object.keys(fieldsAt(map, "data")).length, 0, "integer"), ageColumn],
  services: [
    nameColumn,
    column("Type", path("spec", "type")),
    column("Cluster-IP", path("spec", "clusterIP")),
    column(
      "Port(s)",
      (service) =>
        listAt(service, "spec", "ports")
          .map((port) => `${at(port, "port") ?? ""}/${textAt(port, "protocol") || "TCP"}`)
          .join(",") || "<none>"
    ),
    ageColumn
  ],
  leases: [nameColumn, column("Holder", path("spec", "holderIdentity")), ageColumn],
  events: [
    column("Last Seen", (event, now) =>
      since(at(event, "lastTimestamp") ?? at(event, "series", "lastObservedTime") ?? at(event, "eventTime") ?? at(event, "metadata", "creationTimestamp"), now)
    ),
    column("Type", path("type")),
    column("Reason", path("reason")),
    column("Object", (event) => `${textAt(event, "involvedObject", "kind").toLowerCase()}/${textAt(event, "involvedObject", "name")}`),
    column("Message", (event) => textAt(event, "message").trim()),
    column("Name", path("metadata", "name"), 1)
  ],
  persistentvolumeclaims: [nameColumn, column("Status", path("status", "phase")), column("Volume", path("spec", "volumeName")), ageColumn],
  customresourcedefinitions: [nameColumn, column("Created At", path("metadata", "creationTimestamp"), 0, "date")]
}

const columnsOf = (kind: Kind): ReadonlyArray<Column> =>
  (kind.custom ? undefined : builtIn[kind.plural]) ??
  (kind.columns === undefined ? [nameColumn, ageColumn] : [nameColumn, ...kind.columns.map((one) => (one.type === "date" ? dated(one) : one))])

const dated = (one: Column): Column => ({
  ...one,
  value: (object, now) => {
    const time = one.value(object, now)
    return time === null ? null : since(time, now)
  }
})

/** Whether a client prefers a table to objects. */
export const wantsTable = (accept: string): boolean => accept.includes("as=Table")

/** Objects as `kubectl get` prints them. `include`: `None`, `Metadata` (the default) or `Object`. */
export const table = (kind: Kind, objects: ReadonlyArray<JsonObject>, metadata: JsonObject, include: string | null, now: number): JsonObject => {
  const columns = columnsOf(kind)
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columns.map(({ description, format, name, priority, type }) => ({ name, type, format, description, priority })),
    rows: objects.map((object) => ({
      cells: columns.map((one) => one.value(stored(kind, object), now)),
      ...(include === "None" ? {} : { object: include === "Object" ? object : partial(object) })
    }))
  }
}

/** Only the metadata of an object. */
const partial = (object: JsonObject): JsonObject => ({
  kind: "PartialObjectMetadata",
  apiVersion: "meta.k8s.io/v1",
  metadata: isObject(object.metadata) ? put(object.metadata, ["managedFields"], undefined) : {}
})
