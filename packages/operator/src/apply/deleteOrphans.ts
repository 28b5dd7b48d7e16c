import type { DeploymentId } from "@seatrial/domain"
import { Job, KubeClient, type KubeError, type KubeObject, Pod, PodDisruptionBudget, Secret } from "@seatrial/kube"
import { Duration, Effect, Option } from "effect"
import { refuse } from "../applied/refuse.ts"
import type { Cluster } from "../gather/Cluster.ts"
import { deploymentLabel, engineOrdinal, fetchJobName, hubSecretName, objectName } from "../resources/objectNames.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"

const message =
  "This object has no effect. Its name or its deploymentId is reserved for a deployment made through the API, but no deployment with this ID exists. Delete this object, or apply an object that is named after the model and has no deploymentId."

/** Whether the object exists and nothing deletes it yet. */
const isLive = <A extends KubeObject>(object: A | undefined): object is A => object !== undefined && object.metadata.deletionTimestamp === undefined

const deleteBudget = Effect.fnUntraced(function* ({ budgets, namespace }: Cluster, id: DeploymentId) {
  const kube = yield* KubeClient
  if (isLive(Option.getOrUndefined(yield* budgets.get(objectName(id), namespace))))
    yield* ignoreNotFound(kube.remove(PodDisruptionBudget, objectName(id), namespace))
})

const deleteDownload = Effect.fnUntraced(function* ({ jobs, namespace }: Cluster, id: DeploymentId) {
  const kube = yield* KubeClient
  if (!isLive(Option.getOrUndefined(yield* jobs.get(fetchJobName(id), namespace)))) return
  yield* ignoreNotFound(kube.remove(Secret, hubSecretName(id), namespace))
  yield* ignoreNotFound(kube.remove(Job, fetchJobName(id), namespace, { propagation: "Background" }))
})

const deleteEngines = Effect.fnUntraced(function* ({ namespace, pods }: Cluster, id: DeploymentId) {
  const kube = yield* KubeClient
  const engines = (yield* pods.listByLabel(deploymentLabel, id)).filter((pod) => engineOrdinal(id, pod.metadata.name) !== null && isLive(pod))
  for (const { metadata } of engines) {
    const { name, uid } = metadata
    yield* Effect.logWarning(`the engine of ${id} is deleted: it has neither a deployment nor a custom resource`)
    yield* ignoreNotFound(kube.remove(Pod, name, namespace, uid === undefined ? {} : { uid }))
  }
})

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
  const own = Option.getOrUndefined(yield* cluster.deployments.get(objectName(id), cluster.namespace))
  if (own !== undefined) {
    const isRefused = !isLive(own) || (yield* refuse(own, "NotAdopted", message))
    return isRefused ? Option.none() : Option.some(Duration.seconds(1))
  }
  if (yield* cluster.deployments.mayShow(id)) return Option.some(Duration.seconds(10))
  yield* deleteBudget(cluster, id)
  yield* deleteDownload(cluster, id)
  yield* deleteEngines(cluster, id)
  return Option.none()
})
