import { type KubeClient, type KubeError, Node, Reflector } from "@seatrial/kube"
import { Effect, type Scope } from "effect"
import { HostClassResource } from "../resources/HostClassResource.ts"
import { deploymentLabel } from "../resources/objectNames.ts"
import { type GpuLedger, makeGpuLedger } from "./GpuLedger.ts"
import { type Deployments, watchDeployments } from "./watchDeployments.ts"
import { WatchedBudget, WatchedJob, WatchedPod } from "./watched.ts"

/** What the operator knows of the cluster, kept by watches: of its own namespace, and of nodes and host classes. */
export interface Cluster {
  readonly namespace: string
  /** Also of other namespaces that are mapped to organizations. */
  readonly deployments: Deployments
  readonly pods: Reflector<WatchedPod>
  readonly jobs: Reflector<WatchedJob>
  readonly hostClasses: Reflector<HostClassResource>
  readonly nodes: Reflector<Node>
  readonly budgets: Reflector<WatchedBudget>
  /** What nodes offer and pods take, as the watches tell of it. */
  readonly ledger: GpuLedger
  /** Pods that went, as they were last known, by uid; whoever has dealt with one removes it from here. */
  readonly gonePods: Map<string, WatchedPod>
}

/** Name of the index of pods by the nodes that they are bound to. */
export const byNode = "node"

/** Beyond so many nobody deals with them: then they are gone without their last words. */
const gonePodsKept = 10_000

/** Starts the watches, and ends once each has its first list. GPUs that pods of other namespaces hold are not seen: the scheduler says so in its own words. */
export const watchCluster = Effect.fnUntraced(function* (
  namespace: string,
  others: ReadonlyArray<string>
): Effect.fn.Return<Cluster, KubeError, KubeClient | Scope.Scope> {
  const gonePods = new Map<string, WatchedPod>()
  const onGone = (pod: WatchedPod) => {
    if (pod.metadata.uid !== undefined && gonePods.size < gonePodsKept) gonePods.set(pod.metadata.uid, pod)
  }
  const ledger = makeGpuLedger()
  const cluster: Cluster = {
    namespace,
    gonePods,
    ledger,
    deployments: yield* watchDeployments(namespace, others),
    pods: yield* Reflector.make(
      WatchedPod,
      { namespace },
      { indexLabels: [deploymentLabel], indexBy: { [byNode]: (pod) => pod.spec?.nodeName }, onChange: ledger.setPod, onGone }
    ),
    jobs: yield* Reflector.make(WatchedJob, { namespace }),
    hostClasses: yield* Reflector.make(HostClassResource, {}),
    nodes: yield* Reflector.make(Node, {}, { onChange: ledger.setNode }),
    budgets: yield* Reflector.make(WatchedBudget, { namespace })
  }
  const { budgets, deployments, hostClasses, jobs, nodes, pods } = cluster
  yield* Effect.all(
    [deployments, pods, jobs, hostClasses, nodes, budgets].map(({ synced }) => synced),
    { concurrency: "unbounded", discard: true }
  )
  return cluster
})
