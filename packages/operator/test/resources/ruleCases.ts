import type { HostClassResource } from "../../src/resources/HostClassResource.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { deploymentId, modelId } from "../observations.ts"

const tiny: ModelDeployment["spec"] = { source: { repo: "seatrial/tiny-chat" } }

/** Specifications by the name of their object, with the expected message; null if they are valid. */
export const modelDeploymentCases: ReadonlyArray<readonly [name: string, spec: ModelDeployment["spec"], broken: string | null]> = [
  ["rule-plain", tiny, null],
  ["rule-model", { ...tiny, model: "rule-model" }, null],
  ["rule-other-model", { ...tiny, model: "tiny" }, "spec.model must be the object's name: omit it, or make them equal"],
  [deploymentId.replace("_", "-"), tiny, "names of this form are reserved for API runs: name the object after the model"],
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

/** The same for host classes. */
export const hostClassCases: ReadonlyArray<readonly [name: string, spec: HostClassResource["spec"], broken: string | null]> = [
  ["rule-plain", small, null],
  ["rule.dots", small, "the name of a host class must consist of at most 63 lowercase letters, digits and hyphens"],
  ["any", small, "a host class must not be named any: in a deployment it means every class on which the model fits"],
  ["rule-labels", { ...small, nodeSelector: { "nvidia.com/gpu.product": "H100", zone: "" } }, null],
  [
    "rule-label-key",
    { ...small, nodeSelector: { "Not a label": "x" } },
    "nodeSelector has a key or value that is not a valid label: keys are name or prefix/name, of letters, digits, '-', '_' and '.'"
  ],
  ["rule-any", { ...small, tolerations: [{ operator: "Exists" }] }, null],
  ["rule-value", { ...small, tolerations: [{ key: "gpu", operator: "Exists", value: "a" }] }, "a toleration with operator Exists must not have a value"],
  ["rule-key", { ...small, tolerations: [{ value: "a" }] }, "a toleration without a key tolerates every taint: it requires operator Exists"],
  ["rule-node", { ...small, nodes: 1 }, null],
  ["rule-nodes", { ...small, nodes: 2 }, "nodes must be 1: engines that span several nodes (LeaderWorkerSet) are not supported yet"],
  ["rule-scaling", { ...small, autoscaling: true, maxGpus: 8, rollout: "replace" }, null],
  ["rule-max", { ...small, maxGpus: 8 }, "maxGpus limits nodes that are added on demand: it requires autoscaling"],
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
    "podSecurity.addCapabilities requires runAsRoot: Kubernetes gives added capabilities to no process that does not run as root"
  ],
  ["rule-copies", { ...small, weightsCache: { storageClassName: "local", sizeBytes: 2 ** 40 } }, null],
  ["rule-copies-claim", { ...small, weightsCache: { claimName: "node-weights", verify: "full" } }, null],
  [
    "rule-copies-both",
    { ...small, weightsCache: { claimName: "node-weights", sizeBytes: 2 ** 40 } },
    "weightsCache.claimName cannot be combined with storageClassName and sizeBytes: a claim has its own size"
  ],
  ["rule-copies-size", { ...small, weightsCache: { storageClassName: "local" } }, "weightsCache.storageClassName requires sizeBytes"]
]
