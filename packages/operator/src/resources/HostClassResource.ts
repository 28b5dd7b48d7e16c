import { Micros, Runtime } from "@seatrial/domain"
import { defineResource, objectSchema } from "@seatrial/kube"
import { Schema } from "effect"
import { Condition, observedGeneration } from "./Condition.ts"
import { objectNamePattern, podSettings } from "./podSettings.ts"

const optional = Schema.optionalKey
const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))
/** Bytes of memory: up to 64 TiB. */
const memory = upTo(2 ** 46)
/** Bytes of a volume: up to 1 PiB. */
const bytes = upTo(2 ** 50)

const Toleration = Schema.Struct({
  key: optional(Schema.String.annotate({ description: "Key of the taint. Without a key, and with operator: Exists, every taint is tolerated." })),
  operator: optional(
    Schema.Literals(["Exists", "Equal"]).annotate({ description: "Exists: any value of the key. Equal: this value. Default Equal.", default: "Equal" })
  ),
  value: optional(Schema.String.annotate({ description: "Value of the taint, for operator: Equal." })),
  effect: optional(Schema.Literals(["NoSchedule", "PreferNoSchedule", "NoExecute"]).annotate({ description: "Effect of the taint. Absent: every effect." }))
})

const claimName = Schema.String.check(Schema.isPattern(objectNamePattern))

/** The node-local copies of weights. */
const WeightsCache = Schema.Struct({
  claimName: optional(
    claimName.annotate({
      description:
        "PersistentVolumeClaim of a node-local volume (such as hostPath). On each node of the class the volume is that node's own folder, at the same path. Copies stay in that folder, and all pods of the node share them. Default: each pod makes its own copy."
    })
  ),
  storageClassName: optional(
    claimName.annotate({
      description:
        "StorageClass of the volume that each pod gets for its own copy. sizeBytes is the size of that volume. Default: an emptyDir on the node's disk."
    })
  ),
  sizeBytes: optional(
    bytes.annotate({ description: "Size limit of the pod's own copy in bytes. A larger model is not deployed on the class. Default: no limit." })
  ),
  verify: optional(
    Schema.Literals(["recorded", "full"]).annotate({
      description:
        "How an existing copy is verified before it is used again. recorded: the files have not changed since they were verified. full: byte by byte. Default recorded.",
      default: "recorded"
    })
  )
})

/** The Job that computes the reference of a commit. */
const ReferenceJob = Schema.Struct({
  enabled: optional(
    Schema.Boolean.annotate({
      description: "Whether the references of commits are computed. Default true. If false, only administrators add references.",
      default: true
    })
  ),
  image: optional(
    Schema.String.check(Schema.isBetweenLength(1, 512)).annotate({
      description:
        "Image with Python, torch, transformers and safetensors. Default: the image of the engine that the model is deployed on, if that engine runs on GPUs. Simulated classes and the reference engine have no default: they compute references only if an image is set."
    })
  ),
  python: optional(
    Schema.String.check(Schema.isBetweenLength(1, 512)).annotate({ description: "Python interpreter in the image. Default python3.", default: "python3" })
  ),
  cpu: optional(upTo(256).annotate({ description: "Cores that the Job requests and threads that it uses. Default 4.", default: 4 })),
  memoryBytes: optional(
    memory.annotate({
      description:
        "Memory request and limit of the Job in bytes. Half of it is for weights: the weights of a model that needs more, at 4 bytes for each parameter, are read from the files three times. Default 16 GiB."
    })
  ),
  waitSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 })).annotate({
      description:
        "Longest time that a trial waits for the reference after all other checks, in seconds. Its engine holds its GPUs meanwhile. Then the trial goes on without the reference. Default 600.",
      default: 600
    })
  ),
  nodeSelector: optional(
    Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(63)))
      .check(Schema.isMaxProperties(64))
      .annotate({ description: "Labels of the nodes on which the Job may run. Default: all nodes that can mount the weights." })
  ),
  tolerations: optional(Schema.Array(Toleration).annotate({ description: "Taints that the Job tolerates." }))
}).annotate({
  description:
    "Computes the reference of each commit once, on processors, before its trial compares the engine with it. Default: {}, which uses the defaults of all fields."
})

/** A volume that engines write to. */
const Volume = Schema.Struct({
  claimName: optional(claimName.annotate({ description: "PersistentVolumeClaim in which each pod has its own folder. Default: the node's disk." })),
  sizeBytes: optional(bytes.annotate({ description: "Bytes on the node's disk above which the pod is evicted. Default: no limit." })),
  requestBytes: optional(
    bytes.annotate({ description: "Bytes of ephemeral storage that the engine requests for this volume, so that its node has room. Default: none." })
  )
})

const PodSecurity = Schema.Struct({
  runAsRoot: optional(Schema.Boolean.annotate({ description: "Whether the engine runs as root, for images that require it. Default false." })),
  writableRoot: optional(Schema.Boolean.annotate({ description: "Whether the engine may write to the root filesystem of its container. Default false." })),
  addCapabilities: optional(
    Schema.Array(Schema.String.check(Schema.isPattern(/^[A-Z][A-Z_]{0,62}$/u))).annotate({
      description: "Linux capabilities to add after all are dropped, for example IPC_LOCK for RDMA. Requires runAsRoot: other users do not get them."
    })
  )
}).annotate({ description: "Exceptions from the restricted Pod Security Standard that the engine needs. Default: none." })

/** A kind of GPU host: its hardware, and how pods are scheduled onto it. */
export const HostClassSpec = Schema.Struct({
  runtimes: Schema.NonEmptyArray(
    Schema.Struct({
      runtime: Runtime.annotate({ description: "Engine: vllm, sglang, or reference, which needs no GPU and is for evaluation." }),
      image: Schema.String.check(Schema.isBetweenLength(1, 512)).annotate({ description: "Container image of the engine." })
    })
  ).annotate({ description: "Engines available on the class. The first is the default." }),
  gpuPool: Schema.String.check(Schema.isBetweenLength(1, 128)).annotate({
    description: "GPU type, for example NVIDIA-H100-80GB-HBM3. Measurements apply only to the same type. Cannot be changed."
  }),
  gpuCount: upTo(64).annotate({ description: "GPUs of one engine; a model is split over all of them. Cannot be changed." }),
  gpuMemoryBytes: upTo(2 ** 42).annotate({ description: "Bytes of memory of one GPU." }),
  gpuResource: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9.-]+\/[A-Za-z0-9._-]+$/u), Schema.isMaxLength(317)).annotate({
      description: "Extended resource that pods request. Default nvidia.com/gpu.",
      default: "nvidia.com/gpu"
    })
  ),
  nodeSelector: optional(
    Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(63)))
      .check(Schema.isMaxProperties(64))
      .annotate({ description: "Labels of the nodes that belong to the class. Default: all nodes." })
  ),
  tolerations: optional(Schema.Array(Toleration).annotate({ description: "Taints of these nodes that engine pods tolerate." })),
  weightsClaim: optional(
    claimName.annotate({
      description: "PersistentVolumeClaim that holds downloaded weights, writable by download Jobs and readable by these nodes. Default: the operator's."
    })
  ),
  weightsCache: optional(
    WeightsCache.annotate({
      description:
        "Where a node keeps a verified copy of the weights, which its engines read instead of the claim. Default: none; engines read the claim. With {} each pod copies the weights to its node's disk."
    })
  ),
  referenceJob: optional(ReferenceJob),
  nodes: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })).annotate({
      description: "Nodes that one engine spans. Must be 1 (the default): engines that span several nodes are not supported yet."
    })
  ),
  runtimeClassName: optional(claimName.annotate({ description: "RuntimeClass of engine pods, for example nvidia. Default: the nodes' default runtime." })),
  cpu: optional(
    Schema.String.check(Schema.isPattern(/^([1-9][0-9]{0,3}|[1-9][0-9]{0,6}m)$/u)).annotate({
      description: "CPU request of an engine, for example 8 or 500m; it may use more. Default: one for each GPU and two more."
    })
  ),
  memoryBytes: optional(
    memory.annotate({
      description: "Memory request and limit of an engine in bytes, including /dev/shm. Default: Seatrial requests an estimate and sets no limit."
    })
  ),
  guaranteed: optional(
    Schema.Boolean.annotate({
      description:
        "Whether CPU and memory of all containers of an engine's pod are limited to their requests, so that Kubernetes gives the pod the QoS class Guaranteed. If true, also set cpu and memoryBytes to values that are large enough for your models. Default false."
    })
  ),
  sharedMemoryBytes: optional(
    memory.annotate({ description: "Size of /dev/shm in bytes, which counts as memory of the pod. Default 1 GiB, or 8 GiB if an engine has several GPUs." })
  ),
  ...podSettings,
  scratch: optional(Volume.annotate({ description: "Volume for temporary files (/tmp). Default: the node's disk, without a limit." })),
  compileCache: optional(
    Volume.annotate({
      description: "Volume for compiled kernels. A claim keeps them between starts, separately for each organization and engine version. Default: in /tmp."
    })
  ),
  podSecurity: optional(PodSecurity),
  drainSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3600 })).annotate({
      description: "Seconds that an engine has to finish its requests if its pod is deleted from outside, for example when its node is drained. Default 30."
    })
  ),
  evictable: optional(
    Schema.Boolean.annotate({
      description: "Whether a serving engine may be evicted, for example by kubectl drain. Default false: a PodDisruptionBudget prevents it."
    })
  ),
  rollout: optional(
    Schema.Literals(["surge", "replace"]).annotate({
      description:
        "How a new revision gets GPUs if none are spare. surge: the new revision waits for GPUs while the old one serves. replace: the old revision stops first, so the model is unavailable in between. Default: surge."
    })
  ),
  maxSurge: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 64 })).annotate({
      description:
        "How many engines a model may have in addition to its number of engines while it moves to a new revision. Applies after the trial. Only for models with several engines. Default 1."
    })
  ),
  maxUnavailable: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 64 })).annotate({
      description:
        "By how many engines a model may fall short of its number of engines while it moves to a new revision. At least one always serves. Default 0."
    })
  ),
  sentinel: optional(
    Schema.Struct({
      withdrawLast: optional(
        Schema.Boolean.annotate({
          description:
            "Whether the last engine of a model is also withdrawn and replaced if its probes differ from the trial. The model is then unavailable until the new engine has started. Default false: it goes on, and the object's conditions say so.",
          default: false
        })
      )
    }).annotate({ description: "What happens to a serving engine whose probes differ from the trial." })
  ),
  queueName: optional(
    Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u)).annotate({
      description: "Kueue LocalQueue that admits engine pods; Kueue then decides the order. Default: none; Seatrial decides the order."
    })
  ),
  autoscaling: optional(
    Schema.Boolean.annotate({
      description:
        "Whether nodes of the class are added when a pod requests them. If true, the first waiting run creates its pod although no GPU is free. Default false."
    })
  ),
  maxGpus: optional(
    upTo(1_000_000).annotate({
      description: "Only with autoscaling: maximum number of GPUs that engines of the class may hold or request in total. Default: no limit."
    })
  ),
  pricePerGpuHour: Micros.check(Schema.isMaxLength(15)).annotate({ description: "Price of one GPU for one hour, in micro-dollars, as digits." }),
  benchmarkSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3600 })).annotate({
      description: "Time limit of the benchmark in seconds. Default 300.",
      default: 300
    })
  ),
  bootDeadlineSeconds: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })).annotate({
      description: "Longest time from the start of the container to a ready engine, in seconds. Default 600.",
      default: 600
    })
  ),
  simulated: optional(
    Schema.Boolean.annotate({
      description: "Whether the GPUs are simulated, so that all measurements are those of the reference engine. Default false.",
      default: false
    })
  )
}).annotate({ description: "A kind of GPU host that models can be deployed on." })
export type HostClassSpec = typeof HostClassSpec.Type

const count = (description: string) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description })
const text = (description: string) => Schema.String.annotate({ description })

/** The status that the operator writes. Nothing reads it as truth. */
export const HostClassStatus = Schema.Struct({
  writtenBy: optional(
    text(
      "Namespace of the operator that writes this status. If several installations share the class, one of them writes the status, for its own models and pods."
    )
  ),
  nodes: optional(count("Nodes with the class's labels.")),
  openNodes: optional(count("Nodes of the class that accept engines now: ready, not cordoned, and with no taints except those that the class tolerates.")),
  gpus: optional(count("GPUs of the open nodes.")),
  freeGpus: optional(
    count("GPUs of the open nodes that no pod in the operator's namespace holds. If OPERATOR_COUNT_ALL_PODS is true, pods in all namespaces count.")
  ),
  engines: optional(count("Engine pods of the class.")),
  models: optional(count("Models that serve or are being deployed on it.")),
  modelNames: optional(Schema.Array(Schema.String).annotate({ description: "Names of the first ten of these models." })),
  conditions: optional(
    Schema.Array(Condition).annotate({
      description:
        "Accepted: whether models can be deployed on the class, and why not. HardwareMatches: whether its nodes have the GPUs that it describes. InUse: whether any model is deployed on it, and which."
    })
  ),
  observedGeneration: optional(observedGeneration("Generation of the specification that this status describes."))
}).annotate({ description: "Current capacity and use of the class. Written only by the operator." })
export type HostClassStatus = typeof HostClassStatus.Type

/** A `HostClass` of the cluster: cluster-scoped, `kubectl get hc`. */
export const HostClassResource = defineResource({
  group: "seatrial.dev",
  version: "v1alpha1",
  plural: "hostclasses",
  kind: "HostClass",
  namespaced: false,
  schema: objectSchema({ spec: HostClassSpec, status: optional(HostClassStatus) })
})
export type HostClassResource = (typeof HostClassResource.schema)["Type"]
