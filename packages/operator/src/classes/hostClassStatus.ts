import { isFinished } from "@seatrial/domain"
import type { Capacity } from "../gather/capacity/GpuLedger.ts"
import type { Hardware } from "../gather/capacity/hardware.ts"
import { classVerdict } from "../resources/classVerdict.ts"
import type { HostClassStatus } from "../resources/HostClassResource.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { WatchedHostClass } from "../resources/WatchedHostClass.ts"
import { hardwareVerdict } from "./hardwareVerdict.ts"

/** The most model names that a status lists. */
const maxListedModels = 10

interface Use {
  readonly hostClass: string
  readonly model: string
}

/**
 * The use of a host class by each deployment. It is computed once for each version of the deployment, because every
 * change reads all of them.
 */
const uses = new WeakMap<WatchedDeployment, Use | null>()

const useOf = (deployment: WatchedDeployment): Use | null => {
  const known = uses.get(deployment)
  if (known !== undefined) return known
  const { endpoint, hostClass, model, phase } = deployment.status ?? {}
  const idle = endpoint === undefined && (phase === undefined || phase === "refused" || isFinished(phase))
  const use = hostClass === undefined || model === undefined || idle ? null : { hostClass, model }
  uses.set(deployment, use)
  return use
}

/**
 * The models that serve or are being deployed on each host class, by class name, according to their custom resources.
 * Sorted, without duplicates.
 */
export const modelsByClass = (deployments: ReadonlyArray<WatchedDeployment>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const models = new Map<string, Set<string>>()
  for (const deployment of deployments) {
    const use = useOf(deployment)
    if (use === null) continue
    const known = models.get(use.hostClass)
    if (known === undefined) models.set(use.hostClass, new Set([use.model]))
    else known.add(use.model)
  }
  return new Map([...models].map(([hostClass, models]) => [hostClass, [...models].sort()]))
}

interface StatusInput {
  readonly object: WatchedHostClass
  readonly capacity: Capacity
  readonly hardware: Hardware
  readonly models: ReadonlyArray<string>
  readonly namespace: string
  /** Unix milliseconds. */
  readonly now: number
}

/** The status of a host class. Unchanged conditions keep their transition times. */
export const hostClassStatus = ({ capacity, hardware, models, namespace, now, object }: StatusInput): HostClassStatus => {
  const observedGeneration = object.metadata.generation ?? 1
  const condition = (type: string, status: "True" | "False" | "Unknown", reason: string, message: string) => {
    const earlier = object.status?.conditions?.find((one) => one.type === type)
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : new Date(now).toISOString()
    return { type, status, reason, message, lastTransitionTime, observedGeneration }
  }
  const { accepted, message, reason } = classVerdict(object)
  const matches = hardwareVerdict(object, hardware)
  const remainder = models.length > maxListedModels ? ` and ${models.length - maxListedModels} more` : ""
  const users = models.length === 0 ? `${capacity.engines} engine pods of earlier runs` : `${models.slice(0, maxListedModels).join(", ")}${remainder}`
  const inUse = models.length > 0 || capacity.engines > 0
  return {
    writtenBy: namespace,
    nodes: capacity.nodes,
    openNodes: capacity.openNodes,
    gpus: capacity.gpus,
    freeGpus: capacity.freeGpus,
    engines: capacity.engines,
    models: models.length,
    modelNames: models.slice(0, maxListedModels),
    conditions: [
      condition("Accepted", accepted ? "True" : "False", reason, message),
      condition("HardwareMatches", matches.status, matches.reason, matches.message),
      condition(
        "InUse",
        inUse ? "True" : "False",
        inUse ? "Deployed" : "Unused",
        inUse
          ? `Used by ${users}. Keep this class until they are deployed elsewhere or deleted. Without the class, their engines cannot restart.`
          : "No model is deployed on this class, so you can delete it."
      )
    ],
    observedGeneration
  }
}
