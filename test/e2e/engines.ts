import { type KubeClient, Pod } from "@seatrial/kube"
import { deploymentLabel } from "@seatrial/operator"
import { Effect } from "effect"
import { patiently } from "./cluster.ts"

/** The ready engines of a deployment, by the names of their pods. */
export const readyEngines = (kube: KubeClient["Service"], id: string) =>
  Effect.map(patiently(kube.list(Pod, { namespace: "seatrial", labelSelector: `${deploymentLabel}=${id},seatrial.dev/role=engine` })), (pods) =>
    pods
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.containerStatuses?.[0]?.ready === true)
      .toSorted((one, other) => one.metadata.name.localeCompare(other.metadata.name))
  )
