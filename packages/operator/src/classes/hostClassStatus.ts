import { isFinished } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { Option, Result } from "effect"
import type { Capacity } from "../gather/capacity/GpuLedger.ts"
import type { HostClassStatus } from "../resources/HostClassResource.ts"
import { type PodClass, toPodClass } from "../resources/PodClass.ts"
import { brokenRule, hostClassRules, nodeSelectorProblem } from "../resources/rules.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { readHostClass, type WatchedHostClass } from "../resources/WatchedHostClass.ts"

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

interface Verdict {
  readonly accepted: boolean
  readonly reason: string
  readonly message: string
}

/** Whether models can be deployed on the class, and why not. */
const verdictOf = (watched: WatchedHostClass, podClass: PodClass | null): Verdict => {
  const no = (reason: string, message: string): Verdict => ({ accepted: false, reason, message })
  const read = readHostClass(watched)
  if (Result.isFailure(read)) return no("Unreadable", `Seatrial cannot read this specification: ${read.failure}. Correct the field, or delete the object.`)
  const object = read.success
  if (podClass === null)
    return no("InvalidName", "The name of a host class must consist of at most 63 lowercase letters, digits and hyphens, and must not be any.")
  if (podClass.nodes > 1) {
    return no(
      "SeveralNodesNotAvailable",
      `Its engines span ${podClass.nodes} nodes, which is not supported yet, so nothing is deployed on it. Create a HostClass with nodes: 1.`
    )
  }
  const selector = nodeSelectorProblem(object.spec.nodeSelector ?? {})
  if (selector !== null) return no("InvalidNodeSelector", `${selector}, so no pod can be created for it.`)
  const broken = brokenRule(hostClassRules, object)
  if (broken !== null) return no("Invalid", `${broken}.`)
  const { runtimes } = podClass.hostClass
  const unknown = runtimes.filter(({ runtime }) => engineFor(runtime) === undefined).map(({ runtime }) => runtime)
  if (unknown.length === runtimes.length)
    return no("NoRuntimeAdapter", `Seatrial does not support the runtime ${unknown.join(", ")}, so nothing can be deployed on it.`)
  return { accepted: true, reason: "Accepted", message: "Models can be deployed on it." }
}

interface StatusInput {
  readonly object: WatchedHostClass
  readonly capacity: Capacity
  readonly models: ReadonlyArray<string>
  readonly namespace: string
  /** Unix milliseconds. */
  readonly now: number
}

/** The status of a host class. Unchanged conditions keep their transition times. */
export const hostClassStatus = ({ capacity, models, namespace, now, object }: StatusInput): HostClassStatus => {
  const observedGeneration = object.metadata.generation ?? 1
  const condition = (type: string, holds: boolean, reason: string, message: string) => {
    const status: "True" | "False" = holds ? "True" : "False"
    const earlier = object.status?.conditions?.find((one) => one.type === type)
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : new Date(now).toISOString()
    return { type, status, reason, message, lastTransitionTime, observedGeneration }
  }
  const { accepted, message, reason } = verdictOf(object, Option.getOrNull(toPodClass(object)))
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
      condition("Accepted", accepted, reason, message),
      condition(
        "InUse",
        inUse,
        inUse ? "Deployed" : "Unused",
        inUse
          ? `Used by ${users}. Keep it until they are deployed elsewhere or deleted: without it their engines cannot restart.`
          : "No model is deployed on it, so it can be deleted."
      )
    ],
    observedGeneration
  }
}
