import { Event, KubeClient, type Node, type Pod } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Equal } from "effect"
import type { FetchSeen, PodSeen } from "../decide/Observation.ts"
import { ModelDeployment, type ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { rootCause } from "./rootCause.ts"
import { statusOf } from "./statusOf.ts"
import { downloadEvents, faultEvents, transitionEvents } from "./transitionEvents.ts"

interface MirrorInput {
  readonly run: Run
  readonly pod: PodSeen | null
  /** All pods of the run. */
  readonly pods: ReadonlyArray<Pod>
  readonly fetch: FetchSeen
  /** The engine's. */
  readonly node: Node | undefined
  readonly queue: ModelDeploymentStatus["queue"]
  readonly resource: ModelDeployment
  readonly message: string
  readonly idle: boolean
  readonly now: number
}

/**
 * Shows the run in its custom resource, where that says something else: an event for each transition, then the status. False where the copy that was compared with was
 * an old one; the watch brings the newer.
 */
export const mirror = Effect.fn("mirror")(function* ({ fetch, idle, message, node, now, pod, pods, queue, resource, run }: MirrorInput) {
  const kube = yield* KubeClient
  const { metadata, status: before } = resource
  // A run that has failed has no pods any more: what they said stays.
  const kept = run.phase === "failed" && before?.deploymentId === run.id ? before.cause : undefined
  const cause = rootCause(pods, pod !== null && pod.nodeDownSince !== null, node) ?? kept
  const status = statusOf({ run, pod, fetch, idle, message, cause, queue, generation: metadata.generation ?? 1, before, now })
  if (resource.status !== undefined && Equal.equals(resource.status, status)) return true
  for (const event of [
    ...faultEvents(run, resource, cause, now),
    ...transitionEvents(run, resource, cause),
    ...downloadEvents(run, resource, status.download, now)
  ]) {
    yield* Effect.catchIf(
      kube.create(Event, event),
      (error) => error.reason === "Conflict",
      () => Effect.void
    )
  }
  const { name, namespace, resourceVersion } = resource.metadata
  const object = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "ModelDeployment",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status
  }
  return yield* kube.applyStatus(ModelDeployment, object).pipe(
    Effect.as(true),
    Effect.catchIf(
      (error) => error.reason === "Conflict" || error.reason === "NotFound",
      () => Effect.succeed(false)
    )
  )
})
