import type { HostClassResource } from "../../src/resources/HostClassResource.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { deploymentId, modelId } from "../observations.ts"

const tiny: ModelDeployment["spec"] = { source: { repo: "seatrial/tiny-chat" } }

/** Specifications by the name of their object, with the expected message; null if they are valid. */
export const modelDeploymentCases: ReadonlyArray<readonly [name: string, spec: ModelDeployment["spec"], broken: string | null]> = [
  ["rule-plain", tiny, null],
  ["rule-model", { ...tiny, model: "rule-model" }, null],
  ["rule-other-model", { ...tiny, model: "tiny" }, "spec.model must be the object's name: omit it, or make them equal"],
  [deploymentId.replace("_", "-"), tiny, "names like dep-01... are reserved for deployments made through the API: name the object after the model"],
  ["rule-id", { ...tiny, deploymentId }, "spec.deploymentId is set by Seatrial on objects that it creates"],
  [`rule-${"x".repeat(64)}`, tiny, "the object's name is the model's name: at most 64 characters"],
  ["rule-model-id", { ...tiny, modelId }, null],
  ["rule-two-models", { ...tiny, modelId, model: "rule-two-models" }, "modelId names the model: omit model and deploymentId"],
  ["rule-ref", { source: { ...tiny.source, ref: "v1..v2" } }, "ref must not contain '..'"],
  [
    "rule-context",
    { ...tiny, serving: { maxContext: 2049, yarn: { factor: 2, originalContext: 1024 } } },
    "maxContext must be at most yarn.factor times yarn.originalContext"
  ],
  ["rule-yarn", { ...tiny, serving: { maxContext: 2048, yarn: { factor: 2, originalContext: 1024 } } }, null],
  ["rule-native", { ...tiny, serving: { maxContext: 2049, yarn: { factor: 1.5 } } }, null],
  ["rule-least", { ...tiny, serving: { maxContext: 128 } }, null],
  ["rule-less", { ...tiny, serving: { maxContext: 127 } }, "maxContext must be at least 128"],
  ["rule-factor", { ...tiny, serving: { yarn: { factor: 64 } } }, null],
  ["rule-more", { ...tiny, serving: { yarn: { factor: 64.5 } } }, "yarn.factor must be at most 64"],
  ["rule-replicas", { ...tiny, replicas: 64 }, null],
  ["rule-scaling", { ...tiny, scaling: { minReplicas: 0, maxReplicas: 4, target: 0.5 } }, null],
  ["rule-limits", { ...tiny, scaling: { minReplicas: 2, maxReplicas: 1 } }, "scaling.minReplicas must be below scaling.maxReplicas"],
  ["rule-equal", { ...tiny, scaling: { minReplicas: 2, maxReplicas: 2 } }, "scaling.minReplicas must be below scaling.maxReplicas"],
  [
    "rule-scaled",
    { ...tiny, replicas: 2, scaling: { minReplicas: 1, maxReplicas: 4 } },
    "the autoscaler sets the number of engines between the limits in scaling"
  ],
  [
    deploymentId.replace("_", "-"),
    { ...tiny, deploymentId, replicas: 2 },
    "the object of a deployment made through the API does not set the number of engines"
  ],
  ["rule-any", { ...tiny, serving: { hostClass: "any" } }, null],
  ["rule-classes", { ...tiny, serving: { hostClasses: ["h200", "h100"] } }, null],
  ["rule-both", { ...tiny, serving: { hostClass: "h100", hostClasses: ["h200"] } }, "hostClass names one class and hostClasses several: set one of the two"],
  ["rule-twice", { ...tiny, serving: { hostClasses: ["h100", "h100"] } }, "hostClasses must list each class only once"]
]

const small: HostClassResource["spec"] = {
  runtimes: [{ runtime: "reference", image: "engine:1" }],
  gpuPool: "simulated",
  gpuCount: 1,
  gpuMemoryBytes: 2 ** 30,
  pricePerGpuHour: "1"
}

/** All fields that pods get as they are. */
export const everyPodField: HostClassResource["spec"] = {
  ...small,
  priorityClassName: "high",
  schedulerName: "other",
  labels: { team: "search", "example.com/cost-center": "7" },
  annotations: { "example.com/note": "any text, even {}" },
  env: [{ name: "NCCL_IB_HCA", value: "mlx5" }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }] }]
      },
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 5, preference: { matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["slow"] }] } }
      ]
    },
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app: "noisy" } }, topologyKey: "kubernetes.io/hostname" }]
    }
  },
  extraResources: { "rdma/hca": "1", "hugepages-2Mi": "64Mi" },
  resourceClaims: [{ name: "nic", resourceClaimTemplateName: "nics" }],
  scratch: { sizeBytes: 2 ** 30, requestBytes: 2 ** 30 },
  compileCache: { requestBytes: 2 ** 20 }
}

const wholeGpus = "gpuCount must be 1 with a gpuResource of MIG slices or shared GPUs: an engine cannot be split over parts of GPUs"
const ownGpus = "extraResources must not contain gpuResource: gpuCount says how many GPUs an engine gets"
const oneClaim = "a resource claim must have either resourceClaimName or resourceClaimTemplateName"

/** The same for host classes. */
export const hostClassCases: ReadonlyArray<readonly [name: string, spec: HostClassResource["spec"], broken: string | null]> = [
  ["rule-plain", small, null],
  ["rule.dots", small, "the name of a host class must consist of at most 63 lowercase letters, digits and hyphens"],
  ["any", small, '"any" is not a valid name for a host class: in a deployment, it means every class on which the model fits'],
  ["rule-labels", { ...small, nodeSelector: { "nvidia.com/gpu.product": "H100", zone: "" } }, null],
  [
    "rule-label-key",
    { ...small, nodeSelector: { "Not a label": "x" } },
    "nodeSelector has a key or value that is not a valid label: keys are name or prefix/name, of letters, digits, '-', '_' and '.'"
  ],
  ["rule-any", { ...small, tolerations: [{ operator: "Exists" }] }, null],
  ["rule-value", { ...small, tolerations: [{ key: "gpu", operator: "Exists", value: "a" }] }, "a toleration with operator: Exists must not have a value"],
  ["rule-key", { ...small, tolerations: [{ value: "a" }] }, "a toleration without a key tolerates every taint, so it requires operator: Exists"],
  ["rule-node", { ...small, nodes: 1 }, null],
  ["rule-nodes", { ...small, nodes: 2 }, "nodes must be 1: engines that span several nodes (LeaderWorkerSet) are not supported yet"],
  ["rule-scaling", { ...small, autoscaling: true, maxGpus: 8, rollout: "replace" }, null],
  ["rule-max", { ...small, maxGpus: 8 }, "maxGpus limits nodes that are added on demand, so it requires autoscaling"],
  ["rule-move", { ...small, maxSurge: 0, maxUnavailable: 1 }, null],
  ["rule-still", { ...small, maxSurge: 0 }, "maxSurge and maxUnavailable must not both be 0: a model could then never move to a new revision"],
  ["rule-queue", { ...small, queueName: "gpus", rollout: "surge" }, null],
  [
    "rule-queue-replace",
    { ...small, queueName: "gpus", rollout: "replace" },
    "with queueName, Kueue decides which run gets GPUs: rollout replace and autoscaling cannot be used"
  ],
  ["rule-root", { ...small, podSecurity: { runAsRoot: true, addCapabilities: ["IPC_LOCK"] } }, null],
  ["rule-no-capability", { ...small, podSecurity: { addCapabilities: [] } }, null],
  [
    "rule-capability",
    { ...small, podSecurity: { addCapabilities: ["IPC_LOCK"] } },
    "podSecurity.addCapabilities requires runAsRoot: only processes that run as root get the added capabilities"
  ],
  ["rule-copies", { ...small, weightsCache: { storageClassName: "local", sizeBytes: 2 ** 40 } }, null],
  ["rule-copies-claim", { ...small, weightsCache: { claimName: "node-weights", verify: "full" } }, null],
  [
    "rule-copies-both",
    { ...small, weightsCache: { claimName: "node-weights", sizeBytes: 2 ** 40 } },
    "weightsCache.claimName cannot be combined with storageClassName and sizeBytes: a claim has its own size"
  ],
  ["rule-copies-size", { ...small, weightsCache: { storageClassName: "local" } }, "weightsCache.storageClassName requires sizeBytes"],
  ["rule-pods", everyPodField, null],
  ["rule-slice", { ...small, gpuResource: "nvidia.com/mig-1g.10gb" }, null],
  ["rule-slices", { ...small, gpuCount: 2, gpuResource: "nvidia.com/mig-1g.10gb" }, wholeGpus],
  ["rule-shares", { ...small, gpuCount: 2, gpuResource: "nvidia.com/gpu.shared" }, wholeGpus],
  ["rule-several", { ...small, gpuCount: 2, gpuResource: "nvidia.com/gpu" }, null],
  [
    "rule-scratch-claim",
    { ...small, scratch: { claimName: "fast", requestBytes: 1 } },
    "scratch.requestBytes requests room on the node's disk, so it cannot be combined with claimName"
  ],
  ["rule-scratch-size", { ...small, scratch: { sizeBytes: 1, requestBytes: 2 } }, "scratch.requestBytes must be at most sizeBytes"],
  [
    "rule-cache-claim",
    { ...small, compileCache: { claimName: "fast", requestBytes: 1 } },
    "compileCache.requestBytes requests room on the node's disk, so it cannot be combined with claimName"
  ],
  ["rule-cache-size", { ...small, compileCache: { sizeBytes: 1, requestBytes: 2 } }, "compileCache.requestBytes must be at most sizeBytes"],
  ["rule-bad-label", { ...small, labels: { team: "-" } }, "labels has a key or value that is not a valid label"],
  ...["seatrial.dev/role", "app.kubernetes.io/managed-by", "kueue.x-k8s.io/queue-name"].map(
    (key) =>
      [
        "rule-own-label",
        { ...small, labels: { [key]: "x" } },
        "labels must not contain seatrial.dev/*, app.kubernetes.io/* and kueue.x-k8s.io/queue-name, which Seatrial sets"
      ] as const
  ),
  [
    "rule-bad-annotation",
    { ...small, annotations: { "not a key": "x" } },
    "annotations has a key that is not valid: keys are name or prefix/name, of letters, digits, '-', '_' and '.'"
  ],
  ["rule-own-annotation", { ...small, annotations: { "seatrial.dev/made-from": "x" } }, "annotations must not contain seatrial.dev/*, which Seatrial sets"],
  ...["HOME", "HF_TOKEN", "VLLM_PLUGINS"].map(
    (name) =>
      [
        "rule-own-env",
        { ...small, env: [{ name, value: "x" }] },
        "env must not contain a variable that Seatrial sets, for example HOME or HF_HUB_OFFLINE"
      ] as const
  ),
  ...["cpu", "ephemeral-storage", "hugepages-0Mi", "a b/c"].map(
    (name) =>
      [
        "rule-resource",
        { ...small, extraResources: { [name]: "1" } },
        "extraResources must have names like rdma/hca or hugepages-2Mi: CPU, memory and disk have fields of their own"
      ] as const
  ),
  ["rule-gpus", { ...small, extraResources: { "nvidia.com/gpu": "1" } }, ownGpus],
  ["rule-own-gpus", { ...small, gpuResource: "amd.com/gpu", extraResources: { "amd.com/gpu": "1" } }, ownGpus],
  ["rule-other-gpus", { ...small, gpuResource: "amd.com/gpu", extraResources: { "nvidia.com/gpu": "1" } }, null],
  ["rule-claims", { ...small, resourceClaims: [{ name: "nic" }] }, oneClaim],
  ["rule-two-claims", { ...small, resourceClaims: [{ name: "nic", resourceClaimName: "a", resourceClaimTemplateName: "b" }] }, oneClaim]
]
