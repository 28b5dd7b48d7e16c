import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Equal } from "effect"
import { deploymentLabel, objectName, roleLabel } from "../resources/objectNames.ts"
import type { WatchedBudget } from "../resources/watched.ts"
import { engineLabels, runLabels } from "./engineObjects.ts"

type Protected = Pick<Run, "id" | "replicas">

/** The budget uses a number of pods, because no controller owns the pods. One of several engines may be evicted at a time. */
const specOf = ({ id, replicas = 1 }: Protected) => ({
  minAvailable: Math.max(1, replicas - 1),
  unhealthyPodEvictionPolicy: "AlwaysAllow",
  selector: { matchLabels: { [deploymentLabel]: id, [roleLabel]: "engine" } }
})

/**
 * Protects the serving engines from eviction: a node drain is refused until its requests go to another engine. An engine
 * that is not ready may be evicted.
 */
export const disruptionBudget = (run: Run, namespace: string): KubeObject => {
  const object = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: objectName(run.id), namespace, labels: { ...engineLabels(run), ...runLabels(run, "engine") } },
    spec: specOf(run)
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
