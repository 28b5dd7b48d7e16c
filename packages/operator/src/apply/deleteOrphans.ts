import type { DeploymentId } from "@seatrial/domain"
import { Job, KubeClient, type KubeError, Pod, PodDisruptionBudget, Secret } from "@seatrial/kube"
import { Duration, Effect, Option } from "effect"
import { refuse } from "../applied/refuse.ts"
import type { Cluster } from "../gather/Cluster.ts"
import { deploymentLabel, enginePodName, fetchJobName, hubSecretName, objectName } from "../resources/objectNames.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"

const message =
  "This object deploys nothing: it has the form of an object that Seatrial creates for an API run, and that run does not exist. Delete it, or apply an object that is named after the model and has no deploymentId."

/**
 * Handles objects with the id of a run that Postgres does not contain. While a custom resource shows the run, its
 * engine is left alone, because the operator may be connected to the wrong database. Once the resource is deleted or
 * shows another run, the engine, its budget and its download are deleted. Returns the delay until the next pass if no
 * watch event may trigger it.
 */
export const deleteOrphans = Effect.fnUntraced(function* (
  cluster: Cluster,
  id: DeploymentId
): Effect.fn.Return<Option.Option<Duration.Duration>, KubeError, KubeClient> {
  const kube = yield* KubeClient
  const { namespace } = cluster
  const own = yield* cluster.deployments.get(objectName(id), namespace)
  if (Option.isSome(own)) {
    const isRefused = own.value.metadata.deletionTimestamp !== undefined || (yield* refuse(own.value, "NotAdopted", message))
    return isRefused ? Option.none() : Option.some(Duration.seconds(1))
  }
  if (yield* cluster.deployments.mayShow(id)) return Option.some(Duration.seconds(10))
  const budget = Option.getOrUndefined(yield* cluster.budgets.get(objectName(id), namespace))
  if (budget !== undefined && budget.metadata.deletionTimestamp === undefined)
    yield* ignoreNotFound(kube.remove(PodDisruptionBudget, objectName(id), namespace))
  const download = Option.getOrUndefined(yield* cluster.jobs.get(fetchJobName(id), namespace))
  if (download !== undefined && download.metadata.deletionTimestamp === undefined) {
    yield* ignoreNotFound(kube.remove(Secret, hubSecretName(id), namespace))
    yield* ignoreNotFound(kube.remove(Job, fetchJobName(id), namespace, { propagation: "Background" }))
  }
  const engine = (yield* cluster.pods.listByLabel(deploymentLabel, id)).find(({ metadata }) => metadata.name === enginePodName(id))
  if (engine === undefined || engine.metadata.deletionTimestamp !== undefined) return Option.none()
  yield* Effect.logWarning(`the engine of ${id} is deleted: it has neither a deployment nor a custom resource`)
  const { uid } = engine.metadata
  yield* ignoreNotFound(kube.remove(Pod, engine.metadata.name, namespace, uid === undefined ? {} : { uid }))
  return Option.none()
})
