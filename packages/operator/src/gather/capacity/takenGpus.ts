import { hostClassLabel, organizationLabel } from "../../resources/objectNames.ts"
import type { WatchedPod } from "../../resources/watched.ts"
import { hasEnded } from "../podStatus.ts"
import { quantity } from "./nodeFit.ts"

export const gpusOf = (pod: WatchedPod, resource: string): number =>
  (pod.spec?.containers ?? []).reduce((sum, { resources }) => sum + quantity(resources?.limits?.[resource] ?? resources?.requests?.[resource]), 0)

/** The names of the resources that the pod's containers request. */
export const resourcesOf = (pod: WatchedPod): ReadonlyArray<string> => [
  ...new Set((pod.spec?.containers ?? []).flatMap(({ resources }) => Object.keys({ ...resources?.requests, ...resources?.limits })))
]

/** The resources of one pod. */
export interface Taken {
  readonly node: string | undefined
  readonly hostClass: string
  readonly organization: string | undefined
  /** Whether the scheduler has reported it unschedulable. */
  readonly unschedulable: boolean
  /** Whether the pod is being deleted. */
  readonly ending: boolean
  /** Amounts by resource. */
  readonly amounts: ReadonlyMap<string, number>
}

/** Null if the pod has ended. */
export const takenBy = (pod: WatchedPod): Taken | null => {
  if (hasEnded(pod)) return null
  const { [hostClassLabel]: hostClass = "", [organizationLabel]: organization } = pod.metadata.labels ?? {}
  return {
    node: pod.spec?.nodeName,
    hostClass,
    organization,
    ending: pod.metadata.deletionTimestamp !== undefined,
    unschedulable: pod.status?.conditions?.some(({ reason }) => reason === "Unschedulable") === true,
    amounts: new Map(
      resourcesOf(pod)
        .map((resource) => [resource, gpusOf(pod, resource)] as const)
        .filter(([, amount]) => amount > 0)
    )
  }
}
