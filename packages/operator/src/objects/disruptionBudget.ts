import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Equal } from "effect"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { deploymentLabel, objectName, roleLabel } from "../resources/objectNames.ts"
import type { WatchedBudget } from "../resources/watched.ts"
import { engineLabels, runLabels } from "./engineObjects.ts"

/** `leastReady`: see `leastReady`. */
interface Protected {
  readonly id: Run["id"]
  readonly leastReady: number
}

type Pod = Pick<ObservedPod, "deleting" | "lost" | "name" | "ready" | "url">

const isServing = ({ deleting, lost, name, ready, url }: Pod, endpoints: Run["endpoints"]): boolean =>
  ready && !deleting && lost === null && endpoints.some((endpoint) => endpoint.pod === name && endpoint.url === url && endpoint.reachable)

/**
 * How many engines must be ready for the others to be evicted: one of several that serve may go. Kubernetes also counts
 * a ready engine without traffic (it is compared, or it leaves), so each of those raises the number. An earlier revision
 * needs only as many as the newer ones lack, and none of its engines is replaced. `pods`: of all engines, null for one
 * that is missing.
 */
export const leastReady = ({ endpoints, newer, replicas = 1 }: Pick<Run, "endpoints" | "newer" | "replicas">, all: ReadonlyArray<Pod | null>): number => {
  const isEarlier = newer !== undefined && newer !== null
  const least = Math.max(isEarlier && newer.length > 0 ? 0 : 1, replicas - (newer?.length ?? 0) - 1)
  const pods = isEarlier ? all.filter((pod) => pod !== null) : all
  const serving = pods.filter((pod) => pod !== null && isServing(pod, endpoints)).length
  return Math.min(least + pods.length - serving, Math.max(least, pods.length))
}

/** The budget uses a number of pods, because no workload controller owns the pods. */
const specOf = ({ id, leastReady }: Protected) => ({
  minAvailable: leastReady,
  unhealthyPodEvictionPolicy: "AlwaysAllow",
  selector: { matchLabels: { [deploymentLabel]: id, [roleLabel]: "engine" } }
})

/**
 * Protects the serving engines from eviction: a node drain is refused until its requests go to another engine. An
 * engine that is not ready may be evicted.
 */
export const disruptionBudget = (run: Run, namespace: string, leastReady: number): KubeObject => {
  const object = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: objectName(run.id), namespace, labels: { ...engineLabels(run), ...runLabels(run, "engine") } },
    spec: specOf({ id: run.id, leastReady })
  }
  return object
}

/** Whether the budget still protects exactly the run's engines. */
export const isBudgetIntact = (run: Protected, { spec = {} }: WatchedBudget): boolean => {
  const { maxUnavailable, minAvailable, selector, unhealthyPodEvictionPolicy } = spec
  const wanted = specOf(run)
  return (
    minAvailable === wanted.minAvailable &&
    maxUnavailable === undefined &&
    unhealthyPodEvictionPolicy === wanted.unhealthyPodEvictionPolicy &&
    (selector?.matchExpressions ?? []).length === 0 &&
    Equal.equals(selector?.matchLabels ?? {}, wanted.selector.matchLabels)
  )
}

/** The merge patch that makes the budget intact. A merge patch removes a field only if it names it. */
export const budgetCorrection = (run: Protected, budget: WatchedBudget | undefined) => {
  const { selector, ...wanted } = specOf(run)
  const foreign = Object.fromEntries(Object.keys(budget?.spec?.selector?.matchLabels ?? {}).map((label) => [label, null]))
  return { spec: { ...wanted, maxUnavailable: null, selector: { matchLabels: { ...foreign, ...selector.matchLabels }, matchExpressions: null } } }
}
