import type { KubeClient, Node } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Option } from "effect"
import type { ObservedCopy, ObservedPod } from "../observation/ObservedPod.ts"
import { deploymentLabel, enginePodName } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import type { Cluster } from "./Cluster.ts"
import type { GatherMemory } from "./GatherMemory.ts"
import { firstContainer, observeCopy } from "./observeCopy.ts"
import { observePod } from "./observePod.ts"
import { readProgressLog } from "./readLog.ts"

/** The run's engine in the cluster. */
export interface Engine {
  /** Pods of the run. */
  readonly own: ReadonlyArray<WatchedPod>
  /** Pods of the run and of the run that owns the engine. */
  readonly pods: ReadonlyArray<WatchedPod>
  /** The engine's pod as the watch shows it; undefined if there is none. */
  readonly watched: WatchedPod | undefined
  readonly node: Node | undefined
  readonly pod: ObservedPod | null
}

/**
 * Since when the pod's node does not respond. The time of a missing node starts when it was first missed: it may
 * return, for example if the kubelet registers it again.
 */
const downSince = (
  missingNodes: GatherMemory["missingNodes"],
  { name, nodeDownSince, uid }: ObservedPod,
  node: Option.Option<Node>,
  now: number
): number | null => {
  const before = missingNodes.get(name)
  missingNodes.delete(name)
  if (nodeDownSince === null || Option.isSome(node)) return nodeDownSince
  const since = before?.uid === uid ? Math.min(before.since, now) : now
  missingNodes.set(name, { uid, since })
  return Math.max(nodeDownSince, since)
}

/** The copy of the weights, with its progress while it runs. */
const readCopy = Effect.fnUntraced(function* (watched: WatchedPod, copy: ObservedCopy | null, namespace: string) {
  const container = firstContainer(watched)
  if (copy?.running !== true || container === null) return copy
  return observeCopy(watched, yield* readProgressLog(watched.metadata.name, namespace, container))
})

interface ReadFrom {
  readonly cluster: Cluster
  readonly memory: GatherMemory
}

/** Reads the state of the pod with that name, and its node. `watched`: the pod as the watch shows it. */
export const readPod = Effect.fnUntraced(function* ({ cluster, memory }: ReadFrom, watched: WatchedPod | undefined, name: string, now: number) {
  const { missingNodes, podExpectations } = memory
  if (watched === undefined) {
    // The pod was created but is not visible yet. The decision may be made without it, so its appearance must trigger a
    // pass.
    if (podExpectations.has(name)) podExpectations.set(name, undefined)
    missingNodes.delete(name)
    return { node: undefined, pod: null }
  }
  const node = watched.spec?.nodeName === undefined ? Option.none() : yield* cluster.nodes.get(watched.spec.nodeName)
  const observed = observePod(watched, Option.getOrUndefined(node))
  const nodeDownSince = downSince(missingNodes, observed, node, now)
  const copy = yield* readCopy(watched, observed.copy, cluster.namespace)
  return { node: Option.getOrUndefined(node), pod: { ...observed, nodeDownSince, copy } }
})

/** Reads the state of the run's first engine and its node. */
export const readEngine = Effect.fnUntraced(function* (from: ReadFrom, { engineRun, id }: Run, now: number): Effect.fn.Return<Engine, never, KubeClient> {
  const { cluster } = from
  const own = yield* cluster.pods.listByLabel(deploymentLabel, id)
  const engines = engineRun === id ? own : yield* cluster.pods.listByLabel(deploymentLabel, engineRun)
  const pods = engines === own ? own : [...own, ...engines]
  const name = enginePodName(engineRun)
  const watched = engines.find((pod: WatchedPod) => pod.metadata.name === name)
  return { own, pods, watched, ...(yield* readPod(from, watched, name, now)) }
})
