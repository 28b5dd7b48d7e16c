import { type HostClass, HostClassName, Micros, Runtime } from "@seatrial/domain"
import { defineResource, objectSchema } from "@seatrial/kube"
import { Option, Schema } from "effect"

const optional = Schema.optionalKey
const atLeastOne = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const Toleration = Schema.Struct({
  key: optional(Schema.String.annotate({ description: "Taint key; absent tolerates all." })),
  operator: optional(Schema.Literals(["Exists", "Equal"]).annotate({ description: "Default Equal." })),
  value: optional(Schema.String.annotate({ description: "Taint value, with Equal." })),
  effect: optional(Schema.Literals(["NoSchedule", "PreferNoSchedule", "NoExecute"]).annotate({ description: "Absent tolerates all effects." }))
})

/** What a kind of GPU host offers, and how pods get onto it. */
export const HostClassSpec = Schema.Struct({
  runtimes: Schema.NonEmptyArray(
    Schema.Struct({
      runtime: Runtime.annotate({ description: "Engine." }),
      image: Schema.String.check(Schema.isBetweenLength(1, 512)).annotate({ description: "Container image of the engine." })
    })
  ).annotate({ description: "Engines that are offered here. The first is the default." }),
  gpuPool: Schema.String.check(Schema.isBetweenLength(1, 128)).annotate({ description: "Card class, for example NVIDIA-H100-80GB-HBM3." }),
  gpuCount: atLeastOne.annotate({ description: "GPUs of one engine; a model is split over all of them." }),
  gpuMemoryBytes: atLeastOne.annotate({ description: "Bytes of memory of one GPU." }),
  gpuResource: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9.-]+\/[A-Za-z0-9._-]+$/u)).annotate({
      description: "Extended resource that pods ask for. Default nvidia.com/gpu."
    })
  ),
  nodeSelector: optional(
    Schema.Record(Schema.String, Schema.String).annotate({ description: "Labels of the nodes that belong to the class. Default: all nodes." })
  ),
  tolerations: optional(Schema.Array(Toleration).annotate({ description: "Taints of these nodes that engine pods tolerate." })),
  weightsClaim: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/u)).annotate({
      description: "PersistentVolumeClaim that holds downloaded weights, writable by download Jobs and readable by these nodes. Default: the operator's."
    })
  ),
  pricePerGpuHour: Micros.annotate({ description: "Price of one GPU for one hour, in micro-dollars, as digits." }),
  benchmarkSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3600 })).annotate({
      description: "Longest time that the benchmark takes, in seconds. Default 300."
    })
  ),
  bootDeadlineSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })).annotate({
      description: "Longest time from the start of the container to a ready engine, in seconds. Default 600."
    })
  ),
  simulated: optional(
    Schema.Boolean.annotate({ description: "Whether the GPUs are simulated: then every figure measured here is one of the reference engine." })
  )
}).annotate({ description: "A kind of GPU host that models can be deployed on." })
export type HostClassSpec = typeof HostClassSpec.Type

/** A `HostClass` of the cluster: cluster-scoped, `kubectl get hc`. */
export const HostClassResource = defineResource({
  group: "seatrial.dev",
  version: "v1alpha1",
  plural: "hostclasses",
  kind: "HostClass",
  namespaced: false,
  schema: objectSchema({ spec: HostClassSpec })
})
export type HostClassResource = (typeof HostClassResource.schema)["Type"]

/** A host class with its defaults filled in: what pods are made from. */
export interface PodClass {
  readonly hostClass: HostClass
  readonly gpuResource: string
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly tolerations: NonNullable<HostClassSpec["tolerations"]>
  /** Null: the operator's own default. */
  readonly weightsClaim: string | null
  readonly benchmarkSeconds: number
  readonly bootDeadlineSeconds: number
}

const decodeName = Schema.decodeUnknownOption(HostClassName)

/** What the object says; none where its name cannot be that of a host class. */
export const toPodClass = (object: HostClassResource): Option.Option<PodClass> =>
  Option.map(decodeName(object.metadata.name), (name) => ({
    hostClass: {
      name,
      runtimes: object.spec.runtimes,
      gpu_pool: object.spec.gpuPool,
      gpu_count: object.spec.gpuCount,
      gpu_memory_bytes: object.spec.gpuMemoryBytes,
      price_per_gpu_hour_micros: object.spec.pricePerGpuHour,
      simulated: object.spec.simulated ?? false
    },
    gpuResource: object.spec.gpuResource ?? "nvidia.com/gpu",
    nodeSelector: object.spec.nodeSelector ?? {},
    tolerations: object.spec.tolerations ?? [],
    weightsClaim: object.spec.weightsClaim ?? null,
    benchmarkSeconds: object.spec.benchmarkSeconds ?? 300,
    bootDeadlineSeconds: object.spec.bootDeadlineSeconds ?? 600
  }))
