import { Node, Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { WatchedBudget } from "../../packages/operator/src/resources/watched.ts"
import { patiently } from "../e2e/cluster.ts"
import { type Lane, namespace } from "./Lane.ts"

const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined && (status?.conditions ?? []).some(({ status, type }) => type === "Ready" && status === "True")

const selects = (budget: WatchedBudget, { metadata }: Pod) =>
  Object.entries(budget.spec?.selector?.matchLabels ?? {}).every(([label, value]) => metadata.labels?.[label] === value)

/** Evicts a pod as Kubernetes does, which the local cluster cannot: each budget of a ready pod must allow it. Returns whether it did. */
const evict = Effect.fnUntraced(function* ({ kube }: Lane, pod: Pod) {
  const pods = yield* patiently(kube.list(Pod, { namespace }))
  const budgets = (yield* patiently(kube.list(WatchedBudget, { namespace }))).filter((budget) => selects(budget, pod))
  const isRefused = budgets.some((budget) => pods.filter((each) => selects(budget, each) && isReady(each)).length <= Number(budget.spec?.minAvailable))
  if (isReady(pod) && isRefused) return false
  yield* Effect.ignore(kube.remove(Pod, pod.metadata.name, namespace, { uid: pod.metadata.uid }))
  return true
})

export const setCordoned = ({ kube }: Lane, node: string, unschedulable: boolean) =>
  patiently(kube.mergePatch(Node, node, undefined, { spec: { unschedulable } }))

const readPods = ({ kube }: Lane, node: string) =>
  Effect.map(patiently(kube.list(Pod, { namespace })), (pods) => pods.filter(({ spec }) => spec?.nodeName === node))

/** The names of the pods on a node. */
export const podsOn = (lane: Lane, node: string) => Effect.map(readPods(lane, node), (pods) => pods.map(({ metadata }) => metadata.name))

/** Empties a node as `kubectl drain` does: no pod is placed there, and each one is evicted as soon as its budgets allow it. Returns the number of refusals. */
export const drainNode = Effect.fnUntraced(function* (lane: Lane, node: string) {
  yield* setCordoned(lane, node, true)
  let refusals = 0
  while (true) {
    const pods = yield* readPods(lane, node)
    if (pods.length === 0) return refusals
    for (const pod of pods) {
      if (pod.metadata.deletionTimestamp === undefined && !(yield* evict(lane, pod))) refusals++
    }
    yield* Effect.sleep("100 millis")
  }
})
