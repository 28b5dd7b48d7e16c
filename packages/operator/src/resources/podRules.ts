import { engines } from "@seatrial/engines"
import type { HostClassResource } from "./HostClassResource.ts"
import { areLabels, isLabelKey, labelKey, labelValue } from "./labelSyntax.ts"
import { deploymentLabel, queueLabel } from "./objectNames.ts"
import type { Rule } from "./Rule.ts"

/** Prefix of the labels and annotations of Seatrial. */
const ownPrefix = deploymentLabel.slice(0, deploymentLabel.indexOf("/") + 1)
const standardPrefix = "app.kubernetes.io/"

/** Environment variables that the pods of engines set, for any runtime. */
export const reservedVariables: ReadonlyArray<string> = [
  "POD_IP",
  "HF_HUB_OFFLINE",
  "HF_TOKEN",
  "TRACEPARENT",
  "HOME",
  "USER",
  "LOGNAME",
  "XDG_CACHE_HOME",
  "TRITON_CACHE_DIR",
  "TORCHINDUCTOR_CACHE_DIR",
  "FLASHINFER_WORKSPACE_BASE",
  "CUDA_CACHE_PATH",
  ...engines.flatMap(({ variables }) => variables)
]

const resourceName = "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?|hugepages-[1-9][0-9]*[KMG]i)$"
const isResourceName = new RegExp(resourceName, "u")

const isReservedLabel = (key: string): boolean => key.startsWith(ownPrefix) || key.startsWith(standardPrefix) || key === queueLabel

/** Whether the resource is a part of a GPU: a MIG slice, or a share of time-slicing or MPS. */
export const isGpuShare = (gpuResource: string): boolean => gpuResource.includes("/mig-") || gpuResource.endsWith(".shared")

/** The rules of a volume on the node's disk that engines write to. */
const volumeRules = (field: "scratch" | "compileCache"): ReadonlyArray<Rule<HostClassResource>> => [
  {
    path: `spec.${field}`,
    rule: "!has(self.requestBytes) || !has(self.claimName)",
    message: `${field}.requestBytes requests room on the node's disk, so it cannot be combined with claimName`,
    holds: ({ spec }) => spec[field]?.requestBytes === undefined || spec[field].claimName === undefined
  },
  {
    path: `spec.${field}`,
    rule: "!has(self.requestBytes) || !has(self.sizeBytes) || self.requestBytes <= self.sizeBytes",
    message: `${field}.requestBytes must be at most sizeBytes`,
    holds: ({ spec }) => (spec[field]?.requestBytes ?? 0) <= (spec[field]?.sizeBytes ?? Number.POSITIVE_INFINITY)
  }
]

/** The rules of a `HostClass` about the pods of its engines. */
export const podRules: ReadonlyArray<Rule<HostClassResource>> = [
  {
    path: "spec",
    rule: "self.gpuCount == 1 || !has(self.gpuResource) || !(self.gpuResource.contains('/mig-') || self.gpuResource.endsWith('.shared'))",
    message: "gpuCount must be 1 with a gpuResource of MIG slices or shared GPUs: an engine cannot be split over parts of GPUs",
    holds: ({ spec: { gpuCount, gpuResource } }) => gpuCount === 1 || !isGpuShare(gpuResource ?? "")
  },
  ...volumeRules("scratch"),
  ...volumeRules("compileCache"),
  {
    path: "spec.labels",
    rule: `self.all(key, key.matches('${labelKey}') && self[key].matches('${labelValue}'))`,
    message: "labels has a key or value that is not a valid label",
    holds: ({ spec }) => areLabels(spec.labels ?? {})
  },
  {
    path: "spec.labels",
    rule: `self.all(key, !key.startsWith('${ownPrefix}') && !key.startsWith('${standardPrefix}') && key != '${queueLabel}')`,
    message: `labels must not contain ${ownPrefix}*, ${standardPrefix}* and ${queueLabel}, which Seatrial sets`,
    holds: ({ spec }) => !Object.keys(spec.labels ?? {}).some(isReservedLabel)
  },
  {
    path: "spec.annotations",
    rule: `self.all(key, key.matches('${labelKey}'))`,
    message: "annotations has a key that is not valid: keys are name or prefix/name, of letters, digits, '-', '_' and '.'",
    holds: ({ spec }) => Object.keys(spec.annotations ?? {}).every(isLabelKey)
  },
  {
    path: "spec.annotations",
    rule: `self.all(key, !key.startsWith('${ownPrefix}'))`,
    message: `annotations must not contain ${ownPrefix}*, which Seatrial sets`,
    holds: ({ spec }) => !Object.keys(spec.annotations ?? {}).some((key) => key.startsWith(ownPrefix))
  },
  {
    path: "spec.env[]",
    rule: `!(self.name in [${reservedVariables.map((name) => `'${name}'`).join(", ")}])`,
    message: "env must not contain a variable that Seatrial sets, for example HOME or HF_HUB_OFFLINE",
    holds: ({ spec }) => !(spec.env ?? []).some(({ name }) => reservedVariables.includes(name))
  },
  {
    path: "spec.extraResources",
    rule: `self.all(name, name.matches('${resourceName}'))`,
    message: "extraResources must have names like rdma/hca or hugepages-2Mi: CPU, memory and disk have fields of their own",
    holds: ({ spec }) => Object.keys(spec.extraResources ?? {}).every((name) => isResourceName.test(name))
  },
  {
    path: "spec",
    rule: "!has(self.extraResources) || !((has(self.gpuResource) ? self.gpuResource : 'nvidia.com/gpu') in self.extraResources)",
    message: "extraResources must not contain gpuResource: gpuCount says how many GPUs an engine gets",
    holds: ({ spec: { extraResources, gpuResource } }) => extraResources?.[gpuResource ?? "nvidia.com/gpu"] === undefined
  },
  {
    path: "spec.resourceClaims[]",
    rule: "has(self.resourceClaimName) != has(self.resourceClaimTemplateName)",
    message: "a resource claim must have either resourceClaimName or resourceClaimTemplateName",
    holds: ({ spec }) =>
      (spec.resourceClaims ?? []).every((claim) => (claim.resourceClaimName === undefined) !== (claim.resourceClaimTemplateName === undefined))
  }
]
