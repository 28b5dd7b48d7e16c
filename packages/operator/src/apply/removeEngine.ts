import { KubeClient, Pod } from "@seatrial/kube"
import { Effect, Option } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import type { HoldKeeper } from "../gpu/keepHolds.ts"
import { WatchedPod } from "../resources/watched.ts"

interface Removing {
  readonly cluster: { readonly pods: Pick<Cluster["pods"], "get"> }
  readonly recordHold: HoldKeeper["record"]
}

interface Engine {
  readonly name: string
  readonly namespace: string
  /** Null if no watch has shown the pod yet. */
  readonly uid: string | null
  /** Its node does not respond, so the pod is deleted without a grace period. */
  readonly force: boolean
}

/**
 * Deletes an engine's pod after its GPUs are recorded. If the operator dies right after the deletion, the next one has
 * nothing else to count them from. A pod without a node is only deleted as it was observed: if the scheduler has placed
 * it since, the request fails with a conflict and the next pass knows its node.
 */
export const removeEngine = Effect.fnUntraced(function* ({ cluster, recordHold }: Removing, { force, name, namespace, uid }: Engine) {
  const kube = yield* KubeClient
  // The operator may list pods but not get one.
  const listed = kube.list(WatchedPod, { namespace, fieldSelector: `metadata.name=${name}` })
  const known = uid === null ? (yield* listed).find(({ metadata }) => metadata.name === name) : Option.getOrUndefined(yield* cluster.pods.get(name, namespace))
  const observed = uid === null || known?.metadata.uid === uid ? known : undefined
  if (observed !== undefined) yield* recordHold(observed)
  const isPlaced = (observed?.spec?.nodeName ?? "") !== ""
  yield* kube.remove(Pod, name, namespace, {
    uid: uid ?? observed?.metadata.uid,
    resourceVersion: isPlaced ? undefined : observed?.metadata.resourceVersion,
    // Its requests have ended, so it needs no longer grace period.
    gracePeriodSeconds: force ? 0 : 1
  })
})
