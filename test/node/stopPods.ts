import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { namespace } from "./clusterObjects.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"

const finalizer = "seatrial.dev/test-reads-the-exit"

/**
 * The pods of a program that nobody has deleted, for example `app.kubernetes.io/component=server`. A deleted pod exists until its program has ended, also after `helm
 * uninstall --wait`.
 */
export const podsOf = ({ kube }: Pick<NodeClusterShape, "kube">, labelSelector: string) =>
  Effect.map(kube.list(Pod, { namespace, labelSelector }), (pods) => pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined))

/**
 * Deletes pods with their grace period, and returns the exit code of each container as `container=code`. A finalizer keeps the objects until the kubelet has reported the
 * codes.
 */
export const stopPods = Effect.fnUntraced(function* (cluster: NodeClusterShape, labelSelector: string) {
  const { kube, kubectl } = cluster
  const names = (yield* podsOf(cluster, labelSelector)).map(({ metadata }) => metadata.name)
  const setFinalizers = (finalizers: ReadonlyArray<string>) =>
    Effect.forEach(names, (name) => kube.mergePatch(Pod, name, namespace, { metadata: { finalizers } }), { discard: true })
  yield* setFinalizers([finalizer])
  yield* kubectl(["delete", "pod", ...names, "--wait=false"])
  const statuses = Effect.map(kube.list(Pod, { namespace, labelSelector }), (pods) =>
    pods.filter(({ metadata }) => names.includes(metadata.name)).flatMap(({ status }) => status?.containerStatuses ?? [])
  )
  const ended = yield* eventually(`the containers of ${names.join(", ")} have ended`, statuses, (containers) =>
    containers.every(({ state }) => state?.terminated !== undefined)
  ).pipe(Effect.ensuring(Effect.ignore(setFinalizers([]))))
  return ended.map(({ name, state }) => `${name}=${state?.terminated?.exitCode}`)
})
