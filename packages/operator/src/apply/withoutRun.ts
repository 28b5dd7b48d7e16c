import type { DeploymentId } from "@seatrial/domain"
import { KubeClient, type KubeError, Pod } from "@seatrial/kube"
import { Duration, Effect, Option } from "effect"
import { refuse } from "../applied/refuse.ts"
import type { Cluster } from "../gather/Cluster.ts"
import { deploymentLabel, enginePodName, objectName } from "../resources/objectNames.ts"

const message =
  "Nothing is deployed by this object: it is one that Seatrial makes for a run of the API, and there is no such run. Delete it, or apply one that is named after the model and has no deploymentId."

/**
 * What is done about objects that carry the id of a run that Postgres does not know. While a custom resource shows the run, its engine is left alone, since it may be the
 * wrong database that we look into; once that is deleted or shows another run, the engine goes. When to look again, if no event may tell.
 */
export const withoutRun = Effect.fnUntraced(function* (
  cluster: Cluster,
  id: DeploymentId
): Effect.fn.Return<Option.Option<Duration.Duration>, KubeError, KubeClient> {
  const kube = yield* KubeClient
  const { namespace } = cluster
  const own = yield* cluster.deployments.get(objectName(id), namespace)
  if (Option.isSome(own)) {
    const said = own.value.metadata.deletionTimestamp !== undefined || (yield* refuse(own.value, "NotAdopted", message))
    return said ? Option.none() : Option.some(Duration.seconds(1))
  }
  if ((yield* cluster.deployments.showing(id)).length > 0) return Option.some(Duration.seconds(10))
  const engine = (yield* cluster.pods.listByLabel(deploymentLabel, id)).find(({ metadata }) => metadata.name === enginePodName(id))
  if (engine === undefined || engine.metadata.deletionTimestamp !== undefined) return Option.none()
  yield* Effect.logWarning(`the engine of ${id} is removed: neither a deployment nor a custom resource of it is known`)
  const { uid } = engine.metadata
  yield* Effect.catchIf(
    kube.remove(Pod, engine.metadata.name, namespace, uid === undefined ? {} : { uid }),
    (error) => error.reason === "Conflict" || error.reason === "NotFound",
    () => Effect.void
  )
  return Option.none()
})
