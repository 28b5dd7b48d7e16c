import type { DeploymentId } from "@seatrial/domain"
import { KubeClient, Pod } from "@seatrial/kube"
import { Effect, Option } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { deploymentLabel, enginePodName, objectName } from "../resources/objectNames.ts"
import { explainUnadopted } from "./unadopted.ts"

/**
 * What is done about objects that carry the id of a run that Postgres does not know. While the custom resource is there an engine is left alone, since it may be the
 * wrong database that we look into; once somebody has deleted that too, the engine goes. False where it is to be looked at again soon.
 */
export const withoutRun = Effect.fnUntraced(function* (cluster: Cluster, id: DeploymentId) {
  const kube = yield* KubeClient
  const { namespace } = cluster
  if (Option.isSome(yield* cluster.deployments.get(objectName(id), namespace))) return Option.isNone(yield* explainUnadopted(cluster, objectName(id)))
  const engine = (yield* cluster.pods.listByLabel(deploymentLabel, id)).find(({ metadata }) => metadata.name === enginePodName(id))
  if (engine === undefined || engine.metadata.deletionTimestamp !== undefined) return true
  yield* Effect.logWarning(`the engine of ${id} is removed: neither a deployment nor a custom resource of it is known`)
  const { uid } = engine.metadata
  yield* Effect.catchIf(
    kube.remove(Pod, engine.metadata.name, namespace, uid === undefined ? {} : { uid }),
    (error) => error.reason === "Conflict" || error.reason === "NotFound",
    () => Effect.void
  )
  return true
})
