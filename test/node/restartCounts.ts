import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { namespace } from "./clusterObjects.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"

/** Each running container of the namespace with the number of its restarts. */
export const restartCounts = ({ kube }: Pick<NodeClusterShape, "kube">) =>
  Effect.map(kube.list(Pod, { namespace }), (pods) =>
    pods
      .filter(({ status }) => status?.phase === "Running")
      .flatMap(({ metadata, status }) => (status?.containerStatuses ?? []).map(({ name, restartCount }) => `${metadata.name} ${name} ${restartCount}`))
      .sort()
  )
