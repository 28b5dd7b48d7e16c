import type { DeploymentId } from "@seatrial/domain"
import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Equal } from "effect"
import { deploymentLabel, objectName, roleLabel } from "../resources/objectNames.ts"
import type { WatchedBudget } from "../resources/watched.ts"
import { engineLabels, runLabels } from "./engineObjects.ts"

/** The budget uses a number of pods, because no controller owns the pod. */
const specOf = (id: DeploymentId) => ({
  minAvailable: 1,
  unhealthyPodEvictionPolicy: "AlwaysAllow",
  selector: { matchLabels: { [deploymentLabel]: id, [roleLabel]: "engine" } }
})

/**
 * Protects a serving engine from eviction: a node drain is refused until its requests go to another engine. An engine
 * that is not ready may be evicted.
 */
export const disruptionBudget = (run: Run, namespace: string): KubeObject => {
  const object = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: objectName(run.id), namespace, labels: { ...engineLabels(run), ...runLabels(run, "engine") } },
    spec: specOf(run.id)
  }
  return object
}

/** Whether the budget still protects exactly the run's engine. */
export const isBudgetIntact = (id: DeploymentId, { spec = {} }: WatchedBudget): boolean => {
  const { maxUnavailable, minAvailable, selector, unhealthyPodEvictionPolicy } = spec
  const wanted = specOf(id)
  return (
    minAvailable === wanted.minAvailable &&
    maxUnavailable === undefined &&
    unhealthyPodEvictionPolicy === wanted.unhealthyPodEvictionPolicy &&
    (selector?.matchExpressions ?? []).length === 0 &&
    Equal.equals(selector?.matchLabels ?? {}, wanted.selector.matchLabels)
  )
}

/** The merge patch that makes the budget intact. A merge patch removes a field only if it names it. */
export const budgetCorrection = (id: DeploymentId, budget: WatchedBudget | undefined) => {
  const { selector, ...wanted } = specOf(id)
  const foreign = Object.fromEntries(Object.keys(budget?.spec?.selector?.matchLabels ?? {}).map((label) => [label, null]))
  return { spec: { ...wanted, maxUnavailable: null, selector: { matchLabels: { ...foreign, ...selector.matchLabels }, matchExpressions: null } } }
}
