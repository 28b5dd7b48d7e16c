import { type KubeClient, type KubeError, Node, Reflector } from "@seatrial/kube"
import { Effect, type Scope, Stream } from "effect"
import { deploymentLabel, referenceLabel } from "../resources/objectNames.ts"
import { WatchedHostClass } from "../resources/WatchedHostClass.ts"
import { WatchedBudget, WatchedJob, WatchedPod } from "../resources/watched.ts"
import { type GpuLedger, makeGpuLedger } from "./capacity/GpuLedger.ts"
import { countOtherPods, watchOtherPods } from "./capacity/otherPods.ts"
import { makeReferenceLedger, type ReferenceLedger } from "./references/ReferenceLedger.ts"
import { type Deployments, watchDeployments } from "./watchDeployments.ts"
import { type Unmapped, watchUnmapped } from "./watchUnmapped.ts"

/** The operator's watches: its own namespace, nodes and host classes. */
export interface Cluster {
  readonly namespace: string
  /** Includes the other namespaces that are mapped to organizations. */
  readonly deployments: Deployments
  /** Objects to release in all other namespaces. */
  readonly unmapped: Unmapped
  readonly pods: Reflector<WatchedPod>
  readonly jobs: Reflector<WatchedJob>
  readonly hostClasses: Reflector<WatchedHostClass>
  readonly nodes: Reflector<Node>
  readonly budgets: Reflector<WatchedBudget>
  /** The GPUs that nodes offer and pods take, kept current by the watches. */
  readonly ledger: GpuLedger
  /** The Jobs that compute references. */
  readonly referenceJobs: ReferenceLedger
  /** Whether the ledger counts the GPUs of pods in other namespaces. */
  readonly countsAllPods: boolean
  /** Emits after GPUs of pods in other namespaces have changed. */
  readonly otherPods: Stream.Stream<void>
  /** Deleted pods in their last state, by uid. The consumer removes each pod that it has handled. */
  readonly gonePods: Map<string, WatchedPod>
}

/** Name of the index of pods by node. */
export const byNode = "node"

/** Limit of unhandled deleted pods. Beyond it their last state is dropped. */
const maxGonePods = 10_000

/**
 * Starts the watches, and returns once those that a pass needs have their first list. Without `countsAllPods`, the GPUs of pods in other
 * namespaces are invisible, and only the scheduler reports that they are taken.
 */
export const watchCluster = Effect.fnUntraced(function* (
  namespace: string,
  otherNamespaces: ReadonlyArray<string>,
  countsAllPods = false
): Effect.fn.Return<Cluster, KubeError, KubeClient | Scope.Scope> {
  const gonePods = new Map<string, WatchedPod>()
  const onGone = (pod: WatchedPod) => {
    if (pod.metadata.uid !== undefined && gonePods.size < maxGonePods) gonePods.set(pod.metadata.uid, pod)
  }
  const ledger = makeGpuLedger()
  const referenceJobs = makeReferenceLedger()
  const watches: Omit<Cluster, "unmapped"> = {
    namespace,
    gonePods,
    ledger,
    referenceJobs,
    countsAllPods,
    otherPods: countsAllPods ? yield* countOtherPods(ledger, watchOtherPods(namespace)) : Stream.never,
    deployments: yield* watchDeployments(namespace, otherNamespaces),
    pods: yield* Reflector.make(
      WatchedPod,
      { namespace },
      { indexLabels: [deploymentLabel, referenceLabel], indexBy: { [byNode]: (pod) => pod.spec?.nodeName }, onChange: ledger.setPod, onGone }
    ),
    jobs: yield* Reflector.make(WatchedJob, { namespace }, { onChange: referenceJobs.setJob }),
    hostClasses: yield* Reflector.make(WatchedHostClass, {}),
    nodes: yield* Reflector.make(Node, {}, { onChange: ledger.setNode }),
    budgets: yield* Reflector.make(WatchedBudget, { namespace })
  }
  const { budgets, deployments, hostClasses, jobs, nodes, pods } = watches
  yield* Effect.all(
    [deployments, pods, jobs, hostClasses, nodes, budgets].map(({ synced }) => synced),
    { concurrency: "unbounded", discard: true }
  )
  // For this list, the API server reads every ModelDeployment of the cluster. It would delay the lists that a pass needs.
  return { ...watches, unmapped: yield* watchUnmapped([namespace, ...otherNamespaces]) }
})
