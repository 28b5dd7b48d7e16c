import type { JsonSchema } from "effect"
import { HostClassResource, HostClassSpec } from "./HostClassResource.ts"
import { ModelDeployment, ModelDeploymentSpec, ModelDeploymentStatus } from "./ModelDeployment.ts"
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
  readonly columns: ReadonlyArray<Column>
}

const age: Column = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Since when it exists." }

const definition = ({ columns, description, properties, resource, shortName, singular }: Definition) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${resource.plural}.${resource.group}`, labels: { "app.kubernetes.io/part-of": "seatrial" } },
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
          openAPIV3Schema: {
            type: "object",
            description,
            required: ["spec"],
            properties: {
              apiVersion: { type: "string", description: "Version of this representation." },
              kind: { type: "string", description: "Kind of this object." },
              metadata: { type: "object" },
              ...properties
            }
          }
        },
        ...("status" in properties ? { subresources: { status: {} } } : {}),
        additionalPrinterColumns: columns
      }
    ]
  }
})

/** The definitions of our custom resources, by the name of their file in `k8s/crds`. */
export const customResourceDefinitions = {
  "modeldeployments.yaml": definition({
    resource: ModelDeployment,
    singular: "modeldeployment",
    shortName: "mdep",
    description: "A model from a hub repository on its way through the trial to serving: one run, with everything that became of it.",
    properties: { spec: structuralSchema(ModelDeploymentSpec), status: structuralSchema(ModelDeploymentStatus) },
    columns: [
      { name: "Model", type: "string", jsonPath: ".spec.model", description: "Name of the model within its organization." },
      { name: "Phase", type: "string", jsonPath: ".status.phase", description: "Where the run stands." },
      { name: "Revision", type: "string", jsonPath: ".status.revision", description: "Short commit." },
      { name: "Host class", type: "string", jsonPath: ".status.hostClass", description: "Host class that was chosen." },
      age,
      { name: "Message", type: "string", jsonPath: ".status.message", description: "What the run does or waits for, and why it ended." },
      { name: "Organization", type: "string", jsonPath: ".spec.organization", description: "Slug of the organization.", priority: 1 },
      { name: "Repository", type: "string", jsonPath: ".spec.source.repo", description: "Repository on the model hub.", priority: 1 },
      { name: "Engine", type: "string", jsonPath: ".status.engineVersion", description: "Engine and version.", priority: 1 },
      { name: "Context", type: "integer", jsonPath: ".status.maxContext", description: "Longest context in tokens.", priority: 1 },
      { name: "Endpoint", type: "string", jsonPath: ".status.endpoint", description: "Name that callers use.", priority: 1 }
    ]
  }),
  "hostclasses.yaml": definition({
    resource: HostClassResource,
    singular: "hostclass",
    shortName: "hc",
    description: "A kind of GPU host: what it offers, which engines run on it, and how pods get there.",
    properties: { spec: structuralSchema(HostClassSpec) },
    columns: [
      { name: "GPU", type: "string", jsonPath: ".spec.gpuPool", description: "Card class." },
      { name: "Count", type: "integer", jsonPath: ".spec.gpuCount", description: "GPUs of one engine." },
      { name: "Runtime", type: "string", jsonPath: ".spec.runtimes[0].runtime", description: "Default engine." },
      { name: "Simulated", type: "boolean", jsonPath: ".spec.simulated", description: "Whether the GPUs are simulated." },
      age,
      { name: "Memory", type: "integer", jsonPath: ".spec.gpuMemoryBytes", description: "Bytes of one GPU.", priority: 1 },
      { name: "Price", type: "string", jsonPath: ".spec.pricePerGpuHour", description: "Micro-dollars per GPU and hour.", priority: 1 },
      { name: "Image", type: "string", jsonPath: ".spec.runtimes[0].image", description: "Image of the default engine.", priority: 1 }
    ]
  })
} as const
