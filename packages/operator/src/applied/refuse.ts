import { KubeClient } from "@seatrial/kube"
import { Clock, Effect, Equal } from "effect"
import { tellEvent } from "../apply/tellEvent.ts"
import { aboutResource, hashOf } from "../apply/transitionEvents.ts"
import type { Condition } from "../resources/Condition.ts"
import type { ModelDeployment, ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { ModelDeployment as resourceKind } from "../resources/ModelDeployment.ts"

/** The status of an object whose specification became no run; what an earlier specification of it became stays. `now`: Unix milliseconds. */
export const refusedStatus = ({ metadata, status = {} }: ModelDeployment, reason: string, message: string, now: number): ModelDeploymentStatus => {
  const observedGeneration = metadata.generation ?? 1
  const condition = (type: string, why: string): Condition => {
    const earlier = status.conditions?.find((one) => one.type === type)
    const lastTransitionTime = earlier?.status === "False" ? earlier.lastTransitionTime : new Date(now).toISOString()
    return { type, status: "False", reason: why, message, lastTransitionTime, observedGeneration }
  }
  const others = (status.conditions ?? []).filter(({ type }) => type !== "Accepted")
  if (status.deploymentId === undefined) {
    return { phase: "refused", message, conditions: [condition("Accepted", reason), condition("Ready", "NotAccepted")], observedGeneration }
  }
  return { ...status, conditions: [condition("Accepted", reason), ...others], observedGeneration }
}

/** One for each reason: what was changed and is refused again is counted there. A long name is cut where a part of a name may end. */
export const refusalName = (name: string, reason: string): string => `${name.slice(0, 180).replace(/[-.]+$/u, "")}.refused.${reason.toLowerCase()}`

/** Says in the object and in an event that nothing comes of its specification, and why, where that is not said yet. False where the copy that was seen is an old one. */
export const refuse = Effect.fnUntraced(function* (resource: ModelDeployment, reason: string, message: string) {
  const kube = yield* KubeClient
  const now = yield* Clock.currentTimeMillis
  const status = refusedStatus(resource, reason, message, now)
  if (resource.status !== undefined && Equal.equals(resource.status, status)) return true
  const { generation = 1, name, namespace, resourceVersion } = resource.metadata
  const event = aboutResource(resource, {
    name: refusalName(name, reason),
    type: "Warning",
    reason: "Refused",
    message,
    at: now,
    again: `${generation}.${hashOf(message)}`
  })
  yield* tellEvent(event)
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  const object = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata, status }
  return yield* kube.applyStatus(resourceKind, object).pipe(
    Effect.as(true),
    Effect.catchIf(
      (error) => error.reason === "Conflict" || error.reason === "NotFound",
      () => Effect.succeed(false)
    )
  )
})
