import { anyHostClass, leastContext, maxYarnFactor } from "@seatrial/domain"
import type { HostClassResource } from "./HostClassResource.ts"
import { isLabelKey, isLabelValue, labelKey, labelValue } from "./labelSyntax.ts"
import type { ModelDeployment } from "./ModelDeployment.ts"
import { podRules } from "./podRules.ts"
import type { Rule } from "./Rule.ts"

const runName = "^dep-[0-7][0-9a-hjkmnp-tv-z]{25}$"
const isRunName = new RegExp(runName, "u")

/**
 * The rules about the number of engines. A change of that number starts no run, so the operator also evaluates them for
 * a specification that has its run.
 */
export const scalingRules: ReadonlyArray<Rule<ModelDeployment>> = [
  {
    path: "spec",
    rule: "!has(self.replicas) || !has(self.scaling)",
    message:
      "the autoscaler sets the number of engines between the limits in scaling: remove scaling to set replicas, for example with kubectl scale or a HorizontalPodAutoscaler",
    holds: ({ spec }) => spec.replicas === undefined || spec.scaling === undefined
  },
  {
    path: "spec",
    rule: "!has(self.scaling) || self.scaling.minReplicas < self.scaling.maxReplicas",
    message: "scaling.minReplicas must be below scaling.maxReplicas: for a fixed number of engines, set replicas and remove scaling",
    holds: ({ spec }) => spec.scaling === undefined || spec.scaling.minReplicas < spec.scaling.maxReplicas
  },
  {
    path: "spec",
    rule: "!has(self.deploymentId) || (!has(self.replicas) && !has(self.scaling))",
    message:
      "the object of a deployment made through the API does not set the number of engines: remove replicas and scaling, and change the number of engines with seatrial scale",
    holds: ({ spec }) => spec.deploymentId === undefined || (spec.replicas === undefined && spec.scaling === undefined)
  }
]

/** The rules of a `ModelDeployment`. */
export const modelDeploymentRules: ReadonlyArray<Rule<ModelDeployment>> = [
  {
    path: "",
    rule: "!has(self.spec.deploymentId) || self.metadata.name == self.spec.deploymentId.replace('_', '-')",
    message: "spec.deploymentId is set by Seatrial on objects that it creates: omit it, and name the object after the model",
    holds: ({ metadata, spec }) => spec.deploymentId === undefined || metadata.name === spec.deploymentId.replace("_", "-")
  },
  {
    path: "",
    rule: `has(self.spec.deploymentId) || !self.metadata.name.matches('${runName}')`,
    message: "names like dep-01... are reserved for deployments made through the API: name the object after the model",
    holds: ({ metadata, spec }) => spec.deploymentId !== undefined || !isRunName.test(metadata.name)
  },
  {
    path: "",
    rule: "has(self.spec.deploymentId) || self.metadata.name.size() <= 64",
    message: "the object's name is the model's name: at most 64 characters",
    holds: ({ metadata, spec }) => spec.deploymentId !== undefined || metadata.name.length <= 64
  },
  {
    path: "",
    rule: "has(self.spec.deploymentId) || !has(self.spec.model) || self.spec.model == self.metadata.name",
    message: "spec.model must be the object's name: omit it, or make them equal",
    holds: ({ metadata, spec }) => spec.deploymentId !== undefined || spec.model === undefined || spec.model === metadata.name
  },
  ...scalingRules,
  {
    path: "spec",
    rule: "has(oldSelf.deploymentId) == has(self.deploymentId)",
    message: "deploymentId is set by Seatrial on objects that it creates, and is immutable"
  },
  {
    path: "spec",
    rule: "!has(oldSelf.deploymentId) || self == oldSelf",
    message:
      "this object shows a deployment made through the API, whose specification is immutable: create another deployment instead, or change the number of engines with seatrial scale"
  },
  {
    path: "spec",
    // Removing the field lets a user correct a refused object.
    rule: "!has(oldSelf.organization) || !has(self.organization) || self.organization == oldSelf.organization",
    message: "organization cannot be changed, only removed: the namespace determines it"
  },
  {
    path: "spec",
    rule: "has(oldSelf.modelId) == has(self.modelId) && (!has(self.modelId) || self.modelId == oldSelf.modelId)",
    message: "modelId is immutable: delete this object and apply another one"
  },
  {
    path: "spec",
    rule: "!has(self.modelId) || (!has(self.model) && !has(self.deploymentId))",
    message: "modelId names the model: omit model and deploymentId",
    holds: ({ spec }) => spec.modelId === undefined || (spec.model === undefined && spec.deploymentId === undefined)
  },
  {
    path: "spec.source.repo",
    rule: "self == oldSelf",
    message: "the repository of a model is immutable: to deploy another one, apply a ModelDeployment with another name"
  },
  {
    path: "spec.source.ref",
    rule: "!self.contains('..')",
    message: "ref must not contain '..'",
    holds: ({ spec }) => !(spec.source.ref ?? "").includes("..")
  },
  {
    path: "spec.serving",
    rule: "!has(self.maxContext) || !has(self.yarn) || !has(self.yarn.originalContext) || double(self.maxContext) <= self.yarn.factor * double(self.yarn.originalContext)",
    message: "maxContext must be at most yarn.factor times yarn.originalContext",
    holds: ({ spec }) => {
      const { maxContext, yarn } = spec.serving ?? {}
      return maxContext === undefined || yarn?.originalContext === undefined || maxContext <= yarn.factor * yarn.originalContext
    }
  },
  {
    path: "spec.serving",
    rule: "!has(self.hostClass) || !has(self.hostClasses)",
    message: "hostClass names one class and hostClasses several: set one of the two",
    holds: ({ spec: { serving } }) => serving?.hostClass === undefined || serving.hostClasses === undefined
  },
  {
    path: "spec.serving.hostClasses",
    rule: "self.all(name, self.indexOf(name) == self.lastIndexOf(name))",
    message: "hostClasses must list each class only once",
    holds: ({ spec: { serving } }) => new Set(serving?.hostClasses).size === (serving?.hostClasses ?? []).length
  },
  // Rules instead of bounds in the types: objects that an earlier definition accepted can still be read.
  {
    path: "spec.serving",
    rule: `!has(self.maxContext) || self.maxContext >= ${leastContext}`,
    message: `maxContext must be at least ${leastContext}: the checks of the trial need that many tokens`,
    holds: ({ spec }) => (spec.serving?.maxContext ?? leastContext) >= leastContext
  },
  {
    path: "spec.serving",
    rule: `!has(self.yarn) || self.yarn.factor <= ${maxYarnFactor}.0`,
    message: `yarn.factor must be at most ${maxYarnFactor}`,
    holds: ({ spec }) => (spec.serving?.yarn?.factor ?? 1) <= maxYarnFactor
  }
]

/** The problem of the first entry that is not a valid node label; null if all are valid. */
export const nodeSelectorProblem = (nodeSelector: Readonly<Record<string, string>>): string | null => {
  const invalid = Object.entries(nodeSelector).find(([key, value]) => !isLabelKey(key) || !isLabelValue(value))
  return invalid === undefined ? null : `nodeSelector has ${invalid[0]}=${invalid[1]}, which is not a valid node label`
}

/**
 * The rules of a `HostClass`. Measurements on one GPU type do not apply to another, so the GPU of a class is immutable.
 */
export const hostClassRules: ReadonlyArray<Rule<HostClassResource>> = [
  {
    path: "",
    rule: "self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",
    message: "the name of a host class must consist of at most 63 lowercase letters, digits and hyphens",
    holds: ({ metadata }) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u.test(metadata.name)
  },
  {
    path: "",
    rule: `self.metadata.name != '${anyHostClass}'`,
    message: `"${anyHostClass}" is not a valid name for a host class: in a deployment, it means every class on which the model fits`,
    holds: ({ metadata }) => metadata.name !== anyHostClass
  },
  { path: "spec.gpuPool", rule: "self == oldSelf", message: "gpuPool is immutable, because measurements belong to one GPU type: create another HostClass" },
  {
    path: "spec.gpuCount",
    rule: "self == oldSelf",
    message: "gpuCount is immutable, because serving engines use this number of GPUs: create another HostClass"
  },
  {
    path: "spec",
    rule: "!has(self.nodes) || self.nodes == 1",
    message: "nodes must be 1: engines that span several nodes (LeaderWorkerSet) are not supported yet",
    holds: ({ spec }) => (spec.nodes ?? 1) === 1
  },
  {
    path: "spec",
    rule: "!has(self.maxGpus) || (has(self.autoscaling) && self.autoscaling)",
    message: "maxGpus limits nodes that are added on demand, so it requires autoscaling",
    holds: ({ spec }) => spec.maxGpus === undefined || spec.autoscaling === true
  },
  {
    path: "spec",
    rule: "!has(self.queueName) || ((!has(self.rollout) || self.rollout == 'surge') && (!has(self.autoscaling) || !self.autoscaling))",
    message: "with queueName, Kueue decides which run gets GPUs: rollout replace and autoscaling cannot be used",
    holds: ({ spec }) => spec.queueName === undefined || (spec.rollout !== "replace" && spec.autoscaling !== true)
  },
  {
    path: "spec",
    rule: "!has(self.maxSurge) || self.maxSurge > 0 || (has(self.maxUnavailable) && self.maxUnavailable > 0)",
    message: "maxSurge and maxUnavailable must not both be 0: a model could then never move to a new revision",
    holds: ({ spec }) => spec.maxSurge !== 0 || (spec.maxUnavailable ?? 0) > 0
  },
  {
    path: "spec.podSecurity",
    rule: "!has(self.addCapabilities) || size(self.addCapabilities) == 0 || (has(self.runAsRoot) && self.runAsRoot)",
    message: "podSecurity.addCapabilities requires runAsRoot: only processes that run as root get the added capabilities",
    holds: ({ spec: { podSecurity } }) => (podSecurity?.addCapabilities ?? []).length === 0 || podSecurity?.runAsRoot === true
  },
  {
    path: "spec.weightsCache",
    rule: "!has(self.claimName) || (!has(self.storageClassName) && !has(self.sizeBytes))",
    message: "weightsCache.claimName cannot be combined with storageClassName and sizeBytes: a claim has its own size",
    holds: ({ spec: { weightsCache } }) =>
      weightsCache?.claimName === undefined || (weightsCache.storageClassName === undefined && weightsCache.sizeBytes === undefined)
  },
  {
    path: "spec.weightsCache",
    rule: "!has(self.storageClassName) || has(self.sizeBytes)",
    message: "weightsCache.storageClassName requires sizeBytes",
    holds: ({ spec: { weightsCache } }) => weightsCache?.storageClassName === undefined || weightsCache.sizeBytes !== undefined
  },
  {
    path: "spec.nodeSelector",
    rule: `self.all(key, key.matches('${labelKey}') && self[key].matches('${labelValue}'))`,
    message: "nodeSelector has a key or value that is not a valid label: keys are name or prefix/name, of letters, digits, '-', '_' and '.'",
    holds: ({ spec }) => nodeSelectorProblem(spec.nodeSelector ?? {}) === null
  },
  {
    path: "spec.tolerations[]",
    rule: "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
    message: "a toleration with operator: Exists must not have a value",
    holds: ({ spec }) => (spec.tolerations ?? []).every(({ operator, value }) => operator !== "Exists" || value === undefined)
  },
  {
    path: "spec.tolerations[]",
    rule: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
    message: "a toleration without a key tolerates every taint, so it requires operator: Exists",
    holds: ({ spec }) => (spec.tolerations ?? []).every(({ key, operator }) => key !== undefined || operator === "Exists")
  },
  ...podRules
]
