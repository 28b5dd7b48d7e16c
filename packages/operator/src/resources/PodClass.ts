import { anyHostClass, type HostClass, HostClassName } from "@seatrial/domain"
import { Option, Result, Schema } from "effect"
import type { Affinity } from "./Affinity.ts"
import type { HostClassSpec } from "./HostClassResource.ts"
import { readHostClass, type WatchedHostClass } from "./WatchedHostClass.ts"

/** A host class with defaults applied, from which pods are created. */
export interface PodClass {
  readonly hostClass: HostClass
  readonly gpuResource: string
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly tolerations: NonNullable<HostClassSpec["tolerations"]>
  /** Null for the operator's default: read it with `weightsClaimOf`. */
  readonly weightsClaim: string | null
  /** Null if engines read the claim directly. */
  readonly weightsCache: WeightsCache | null
  readonly benchmarkSeconds: number
  readonly bootDeadlineSeconds: number
  readonly nodes: number
  readonly runtimeClassName: string | null
  /** A Kubernetes quantity; null for an estimate (see `engineResources`). */
  readonly cpu: string | null
  /** Null for an estimate. */
  readonly memoryBytes: number | null
  /** Whether all limits of the pod are its requests. */
  readonly guaranteed: boolean
  readonly sharedMemoryBytes: number
  readonly priorityClassName: string | null
  readonly schedulerName: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly env: NonNullable<HostClassSpec["env"]>
  readonly affinity: Affinity
  /** Amounts by resource, as Kubernetes quantities. */
  readonly extraResources: Readonly<Record<string, string>>
  readonly resourceClaims: NonNullable<HostClassSpec["resourceClaims"]>
  readonly scratch: VolumeOf
  /** Null to use the scratch volume. */
  readonly compileCache: VolumeOf | null
  readonly podSecurity: { readonly runAsRoot: boolean; readonly writableRoot: boolean; readonly addCapabilities: ReadonlyArray<string> }
  readonly drainSeconds: number
  readonly evictable: boolean
  readonly rollout: "surge" | "replace"
  /** Engines beyond the wanted number during a move to a new revision. Absent: 1. */
  readonly maxSurge?: number
  /** Engines that may be missing during such a move. Absent: 0. */
  readonly maxUnavailable?: number
  /** What happens to an engine whose probes differ from its trial. Absent: the model's last engine goes on. */
  readonly sentinel?: { readonly withdrawLast?: boolean }
  /** The queue of Kueue; null if the operator's own order applies. */
  readonly queueName: string | null
  readonly autoscaling: boolean
  readonly maxGpus: number | null
  /** Absent: references are not computed. */
  readonly referenceJob?: ReferenceJobOf
}

/** How the references of commits are computed. */
export interface ReferenceJobOf {
  /** Null for the engine's own image. */
  readonly image: string | null
  readonly python: string
  readonly cpu: number
  readonly memoryBytes: number
  readonly waitSeconds: number
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly tolerations: NonNullable<HostClassSpec["tolerations"]>
}

/**
 * The place of a node's copies of weights: a claim that all its pods share, or a volume of each pod (of that
 * StorageClass, or on the node's disk).
 */
export interface WeightsCache {
  readonly claimName: string | null
  readonly storageClassName: string | null
  readonly sizeBytes: number | null
  readonly verify: "recorded" | "full"
}

/** Null for the node's own disk, without a limit, and without a request. */
export interface VolumeOf {
  readonly claimName: string | null
  readonly sizeBytes: number | null
  readonly requestBytes: number | null
}

/** The claim with the weights of the class's runs; the operator's own if the class names none. */
export const weightsClaimOf = (podClass: PodClass | null, settings: { readonly weightsClaim: string }): string =>
  podClass?.weightsClaim ?? settings.weightsClaim

const gib = 2 ** 30

/** Applied to settings that the specification of a class omits. */
const defaults = {
  gpuResource: "nvidia.com/gpu",
  nodeSelector: {},
  tolerations: [],
  weightsClaim: null,
  benchmarkSeconds: 300,
  bootDeadlineSeconds: 600,
  nodes: 1,
  runtimeClassName: null,
  cpu: null,
  memoryBytes: null,
  guaranteed: false,
  priorityClassName: null,
  schedulerName: null,
  labels: {},
  annotations: {},
  env: [],
  affinity: {},
  extraResources: {},
  resourceClaims: [],
  drainSeconds: 30,
  evictable: false,
  rollout: "surge",
  queueName: null,
  autoscaling: false,
  maxGpus: null,
  simulated: false
} as const

const volumeDefaults = { claimName: null, sizeBytes: null, requestBytes: null }
const cacheDefaults = { claimName: null, storageClassName: null, sizeBytes: null, verify: "recorded" } as const
const referenceDefaults = { image: null, python: "python3", cpu: 4, memoryBytes: 16 * gib, waitSeconds: 600, nodeSelector: {}, tolerations: [] }
const securityDefaults = { runAsRoot: false, writableRoot: false, addCapabilities: [] }

/** A copy of the pod's own has a size. The size of a claim is unknown. */
const weightsLimit = ({ weightsCache }: HostClassSpec) =>
  weightsCache?.sizeBytes === undefined || weightsCache.claimName !== undefined ? {} : { weights_limit_bytes: weightsCache.sizeBytes }

const hostClassOf = (name: string, spec: HostClassSpec): HostClass => ({
  name,
  runtimes: spec.runtimes,
  gpu_pool: spec.gpuPool,
  gpu_count: spec.gpuCount,
  gpu_memory_bytes: spec.gpuMemoryBytes,
  ...weightsLimit(spec),
  price_per_gpu_hour_micros: spec.pricePerGpuHour,
  simulated: spec.simulated ?? defaults.simulated
})

const podClassOf = (name: string, spec: HostClassSpec): PodClass => {
  const { gpuCount, gpuMemoryBytes, gpuPool, pricePerGpuHour, referenceJob, runtimes, simulated, ...settings } = { ...defaults, ...spec }
  const { enabled = true, ...job } = referenceJob ?? {}
  return {
    ...settings,
    ...(enabled ? { referenceJob: { ...referenceDefaults, ...job } } : {}),
    hostClass: hostClassOf(name, spec),
    weightsCache: spec.weightsCache === undefined ? null : { ...cacheDefaults, ...spec.weightsCache },
    sharedMemoryBytes: spec.sharedMemoryBytes ?? (gpuCount > 1 ? 8 : 1) * gib,
    scratch: { ...volumeDefaults, ...spec.scratch },
    compileCache: spec.compileCache === undefined ? null : { ...volumeDefaults, ...spec.compileCache },
    podSecurity: { ...securityDefaults, ...spec.podSecurity }
  }
}

const decodeName = Schema.decodeUnknownOption(HostClassName)

const read = (object: WatchedHostClass): Option.Option<PodClass> =>
  Option.flatMap(
    Option.filter(decodeName(object.metadata.name), (name) => name !== anyHostClass),
    (name) => Option.map(Result.getSuccess(readHostClass(object)), ({ spec }) => podClassOf(name, spec))
  )

const known = new WeakMap<WatchedHostClass, Option.Option<PodClass>>()

/**
 * The class of the object; none if its specification cannot be read or its name cannot be a host class's. The same
 * object always gives the same instance.
 */
export const toPodClass = (object: WatchedHostClass): Option.Option<PodClass> => {
  const before = known.get(object)
  if (before !== undefined) return before
  const podClass = read(object)
  known.set(object, podClass)
  return podClass
}
