import { Event, KubeClient } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Equal } from "effect"
import type { PodSeen } from "../decide/Observation.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { statusOf } from "./statusOf.ts"
import { transitionEvents } from "./transitionEvents.ts"

interface MirrorInput {
  readonly run: Run
  readonly pod: PodSeen | null
  readonly resource: ModelDeployment
  readonly message: string
  readonly now: number
}

/**
 * Shows the run in its custom resource, where that says something else: an event for each transition, then the status. False where the copy that was compared with was
 * an old one; the watch brings the newer.
 */
export const mirror = Effect.fn("mirror")(function* ({ message, now, pod, resource, run }: MirrorInput) {
  const kube = yield* KubeClient
  const status = statusOf({ run, pod, message, generation: resource.metadata.generation ?? 1, before: resource.status, now })
  if (resource.status !== undefined && Equal.equals(resource.status, status)) return true
  for (const event of transitionEvents(run, resource)) {
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
