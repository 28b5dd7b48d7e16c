import { KubeClient } from "@seatrial/kube"
import { Clock, Duration, Effect, Equal, Option } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { ModelDeployment, type ModelDeploymentStatus } from "../resources/ModelDeployment.ts"

const message =
  "Nothing is deployed by this object: for now deployments are made through the API (POST /v1/deployments, or `seatrial deploy`), which makes their ModelDeployments itself. It can be deleted."

const soon = Duration.seconds(1)

/** What a custom resource says that has no deployment behind it. `now`: Unix milliseconds. */
export const unadoptedStatus = ({ metadata, status }: ModelDeployment, now: number): ModelDeploymentStatus => {
  const generation = metadata.generation ?? 1
  const earlier = status?.conditions?.find(({ reason, type }) => type === "Ready" && reason === "NotAdopted")
  const lastTransitionTime = earlier?.lastTransitionTime ?? new Date(now).toISOString()
  return {
    message,
    conditions: [{ type: "Ready", status: "False", reason: "NotAdopted", message, lastTransitionTime, observedGeneration: generation }],
    observedGeneration: generation
  }
}

/** Says in the status of a custom resource that nothing comes of it, where that is not said yet. When to try again, where the copy that was seen is an old one. */
export const explainUnadopted = Effect.fnUntraced(function* (cluster: Cluster, name: string) {
  const kube = yield* KubeClient
  const { namespace } = cluster
  const found = yield* cluster.deployments.get(name, namespace)
  if (Option.isNone(found) || found.value.metadata.deletionTimestamp !== undefined) return Option.none<Duration.Duration>()
  const status = unadoptedStatus(found.value, yield* Clock.currentTimeMillis)
  if (found.value.status !== undefined && Equal.equals(found.value.status, status)) return Option.none()
  const { resourceVersion } = found.value.metadata
  const metadata = { name, namespace, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  const object = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata, status }
  return yield* kube.applyStatus(ModelDeployment, object).pipe(
    Effect.as(Option.none<Duration.Duration>()),
    Effect.catchIf(
      (error) => error.reason === "Conflict" || error.reason === "NotFound",
      () => Effect.succeed(Option.some(soon))
    )
  )
})
