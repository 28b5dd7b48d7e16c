import { type JsonSchema, Predicate, type Schema } from "effect"
import { HostClassResource, HostClassSpec, HostClassStatus } from "./HostClassResource.ts"
import { ModelDeployment, ModelDeploymentSpec, ModelDeploymentStatus } from "./ModelDeployment.ts"
import type { Rule } from "./Rule.ts"
import { hostClassRules, modelDeploymentRules } from "./rules.ts"
import { structuralSchema } from "./structuralSchema.ts"

interface Column {
  readonly name: string
  readonly type: "string" | "integer" | "date" | "boolean"
  readonly jsonPath: string
  readonly description: string
  /** 1: only with `-o wide`. */
  readonly priority?: number
}

interface Definition {
  readonly resource: { readonly group: string; readonly version: string; readonly plural: string; readonly kind: string; readonly namespaced: boolean }
  readonly singular: string
  readonly shortName: string
  readonly description: string
  readonly properties: Readonly<Record<string, JsonSchema.JsonSchema>>
  /** Without the columns of priority 1, a line of `kubectl get` fits 100 columns for names of usual length. */
  readonly columns: ReadonlyArray<Column>
  readonly rules: ReadonlyArray<Pick<Rule<never>, "path" | "rule" | "message">>
  /** The key fields of list items, by path of the list. */
  readonly listKeys: Readonly<Record<string, ReadonlyArray<string>>>
  /**
   * Paths of fields that one writer always writes as a unit. The API server then tracks no owner for their parts, which
   * would cost as much as the rest of the write.
   */
  readonly atomic: ReadonlyArray<string>
  /** The paths of the scale subresource, which kubectl scale and autoscalers use; absent: there is none. */
  readonly scale?: { readonly specReplicasPath: string; readonly statusReplicasPath: string; readonly labelSelectorPath: string }
}

/** Adds these members to the part of a schema at that path; see `Rule.path`. Throws if the path does not exist. */
const extended = (schema: unknown, path: string, members: JsonSchema.JsonSchema): JsonSchema.JsonSchema => {
  if (!Predicate.isObject(schema)) throw new TypeError(`no schema at ${path}`)
  if (path === "") return { ...schema, ...members }
  if (path.startsWith("[]")) return { ...schema, items: extended(schema.items, path.slice(2).replace(/^\./, ""), members) }
  const name = /^[^.[]+/.exec(path)?.[0] ?? ""
  const properties = Predicate.isObject(schema.properties) ? schema.properties : {}
  return { ...schema, properties: { ...properties, [name]: extended(properties[name], path.slice(name.length).replace(/^\./, ""), members) } }
}

const ruled = (schema: JsonSchema.JsonSchema, { atomic, listKeys, rules }: Pick<Definition, "atomic" | "rules" | "listKeys">): JsonSchema.JsonSchema => {
  const byPath = Map.groupBy(rules, ({ path }) => path)
  const validated = [...byPath].reduce(
    (result, [path, of]) => extended(result, path, { "x-kubernetes-validations": of.map(({ message, rule }) => ({ rule, message })) }),
    schema
  )
  const keyed = Object.entries(listKeys).reduce(
    (result, [path, keys]) => extended(result, path, { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys }),
    validated
  )
  return atomic.reduce((result, path) => extended(result, path, { "x-kubernetes-map-type": "atomic" }), keyed)
}

/** Without this default, kstatus would read a new object as done: a client that waits, such as Helm, would not wait for the operator. */
const statusSchema = (schema: Schema.Constraint) => ({ ...structuralSchema(schema), default: { observedGeneration: -1 } })

const age: Column = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since its creation." }

const definition = ({ atomic, columns, description, listKeys, properties, resource, rules, scale, shortName, singular }: Definition) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: `${resource.plural}.${resource.group}`,
    labels: { "app.kubernetes.io/part-of": "seatrial" },
    // With a definition the API server deletes all its objects. Helm never deletes one; this is for Argo CD.
    annotations: { "argocd.argoproj.io/sync-options": "Prune=false,Delete=false" }
  },
  spec: {
    group: resource.group,
    scope: resource.namespaced ? "Namespaced" : "Cluster",
    names: { plural: resource.plural, singular, kind: resource.kind, listKind: `${resource.kind}List`, shortNames: [shortName], categories: ["seatrial"] },
    versions: [
      {
        name: resource.version,
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: ruled(
            {
              type: "object",
              description,
              required: ["spec"],
              properties: {
                apiVersion: { type: "string", description: "Version of this representation." },
                kind: { type: "string", description: "Kind of this object." },
                metadata: { type: "object" },
                ...properties
              }
            },
            { atomic, rules, listKeys }
          )
        },
        ...("status" in properties ? { subresources: { status: {}, ...(scale === undefined ? {} : { scale }) } } : {}),
        additionalPrinterColumns: columns
      }
    ]
  }
})

/** The custom resource definitions, by file name in `k8s/crds`. */
export const customResourceDefinitions = {
  "modeldeployments.yaml": definition({
    resource: ModelDeployment,
    singular: "modeldeployment",
    shortName: "mdep",
    description:
      "A model from a hub repository, its trial and its serving state. Apply an object with the name of the model to deploy it, change it to start a new run, and delete it to retire the model.",
    properties: { spec: structuralSchema(ModelDeploymentSpec), status: statusSchema(ModelDeploymentStatus) },
    rules: modelDeploymentRules,
    listKeys: { "status.conditions": ["type"] },
    atomic: ["status"],
    scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas", labelSelectorPath: ".status.selector" },
    columns: [
      { name: "Model", type: "string", jsonPath: ".status.model", description: "Name that callers use." },
      { name: "Phase", type: "string", jsonPath: ".status.phase", description: "Phase of the run." },
      {
        name: "Ready",
        type: "string",
        jsonPath: '.status.conditions[?(@.type=="Ready")].status',
        description: "Whether its engine serves now."
      },
      {
        name: "Available",
        type: "string",
        jsonPath: '.status.conditions[?(@.type=="Available")].status',
        description: "Whether the model answers, with this or an earlier revision."
      },
      age,
      { name: "Host class", type: "string", jsonPath: ".status.hostClass", description: "Host class that was chosen.", priority: 1 },
      { name: "Message", type: "string", jsonPath: ".status.message", description: "What the run does or waits for, and why it ended.", priority: 1 },
      { name: "Desired", type: "integer", jsonPath: ".status.desiredReplicas", description: "Engines that the model should have.", priority: 1 },
      { name: "Granted", type: "integer", jsonPath: ".status.replicas", description: "Engine pods that exist.", priority: 1 },
      { name: "Ready engines", type: "integer", jsonPath: ".status.readyReplicas", description: "Engines that serve.", priority: 1 },
      { name: "Revision", type: "string", jsonPath: ".status.revision", description: "Short commit.", priority: 1 },
      { name: "Repository", type: "string", jsonPath: ".spec.source.repo", description: "Repository on the model hub.", priority: 1 },
      { name: "Commit", type: "string", jsonPath: ".status.commit", description: "Full commit.", priority: 1 },
      { name: "Engine", type: "string", jsonPath: ".status.engineVersion", description: "Engine and version.", priority: 1 },
      { name: "Context", type: "integer", jsonPath: ".status.maxContext", description: "Longest context in tokens.", priority: 1 },
      { name: "GPUs", type: "integer", jsonPath: ".status.gpus", description: "GPUs of its engine.", priority: 1 },
      { name: "Place", type: "integer", jsonPath: ".status.queue.place", description: "Place in the queue of its host class.", priority: 1 },
      { name: "Endpoint", type: "string", jsonPath: ".status.endpoint", description: "Name that callers use while the model is served.", priority: 1 },
      { name: "Deployment", type: "string", jsonPath: ".status.deploymentId", description: "Id of the run in the API.", priority: 1 }
    ]
  }),
  "hostclasses.yaml": definition({
    resource: HostClassResource,
    singular: "hostclass",
    shortName: "hc",
    description: "A kind of GPU host: its hardware, its engines, and how pods are scheduled onto it.",
    properties: { spec: structuralSchema(HostClassSpec), status: statusSchema(HostClassStatus) },
    rules: hostClassRules,
    listKeys: { "spec.runtimes": ["runtime"], "spec.env": ["name"], "spec.resourceClaims": ["name"], "status.conditions": ["type"] },
    atomic: ["status"],
    columns: [
      { name: "GPU", type: "string", jsonPath: ".spec.gpuPool", description: "GPU type." },
      { name: "Nodes", type: "integer", jsonPath: ".status.nodes", description: "Nodes with the class's labels." },
      { name: "GPUs", type: "integer", jsonPath: ".status.gpus", description: "GPUs of the nodes that accept engines." },
      { name: "Free", type: "integer", jsonPath: ".status.freeGpus", description: "Free GPUs of the nodes that accept engines." },
      { name: "Models", type: "integer", jsonPath: ".status.models", description: "Models that use it." },
      {
        name: "Accepted",
        type: "string",
        jsonPath: ".status.conditions[?(@.type=='Accepted')].status",
        description: "Whether models can be deployed on it; if not, the condition contains the reason."
      },
      age,
      { name: "Count", type: "integer", jsonPath: ".spec.gpuCount", description: "GPUs of one engine.", priority: 1 },
      { name: "Runtime", type: "string", jsonPath: ".spec.runtimes[0].runtime", description: "Default engine.", priority: 1 },
      { name: "Simulated", type: "boolean", jsonPath: ".spec.simulated", description: "Whether the GPUs are simulated.", priority: 1 },
      { name: "Memory", type: "integer", jsonPath: ".spec.gpuMemoryBytes", description: "Bytes of one GPU.", priority: 1 },
      { name: "Price", type: "string", jsonPath: ".spec.pricePerGpuHour", description: "Micro-dollars per GPU and hour.", priority: 1 },
      { name: "Image", type: "string", jsonPath: ".spec.runtimes[0].image", description: "Image of the default engine.", priority: 1 }
    ]
  })
} as const
