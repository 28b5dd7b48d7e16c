import { type Event, KubeClient } from "@seatrial/kube"
import { Clock, Effect, Equal } from "effect"
import { isStale } from "../apply/ignoreNotFound.ts"
import { recordEvent } from "../apply/recordEvent.ts"
import { aboutResource, hashOf } from "../apply/transitionEvents.ts"
import type { Condition } from "../resources/Condition.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { WatchedDeployment } from "../resources/WatchedDeployment.ts"

/** The status of a refused object. The state of an earlier accepted specification stays. `now`: Unix milliseconds. */
export const refusedStatus = ({ metadata, status = {} }: WatchedDeployment, reason: string, message: string, now: number): ModelDeploymentStatus => {
  const observedGeneration = metadata.generation ?? 1
  const condition = (type: string, value: "False" | "True", why: string): Condition => {
    const earlier = status.conditions?.find((one) => one.type === type)
    const lastTransitionTime = earlier?.status === value ? earlier.lastTransitionTime : new Date(now).toISOString()
    return { type, status: value, reason: why, message, lastTransitionTime, observedGeneration }
  }
  const refused = [condition("Accepted", "False", reason), condition("Progressing", "False", reason), condition("Stalled", "True", reason)]
  if (status.deploymentId === undefined) {
    const absent = [condition("Ready", "False", "NotAccepted"), condition("Available", "False", "NotAccepted")]
    return { phase: "refused", message, conditions: [...refused, ...absent], observedGeneration }
  }
  // In the order of the run's status, so that the two writers agree.
  const before = status.conditions ?? []
  const conditions = before.map((one) => refused.find(({ type }) => type === one.type) ?? one)
  const added = refused.filter(({ type }) => before.every((one) => one.type !== type))
  return { ...status, conditions: [...added, ...conditions], observedGeneration }
}

/**
 * One event name for each reason, so that repeated refusals are counted. A long name is cut so that it stays a valid
 * name.
 */
export const refusalName = (name: string, reason: string): string => `${name.slice(0, 180).replace(/[-.]+$/u, "")}.refused.${reason.toLowerCase()}`

/** The event of a refused specification. `at`: Unix milliseconds. */
export const refusedEvent = (resource: WatchedDeployment, reason: string, message: string, at: number): Event => {
  const { generation = 1, name } = resource.metadata
  const again = `${generation}.${hashOf(message)}`
  return aboutResource(resource, { name: refusalName(name, reason), type: "Warning", action: "Validate", reason: "Refused", message, at, again })
}

/**
 * Records in the status and in an event why a specification is refused, if that is not recorded yet. Returns false if
 * the copy was stale.
 */
export const refuse = Effect.fnUntraced(function* (resource: WatchedDeployment, reason: string, message: string) {
  const kube = yield* KubeClient
  const now = yield* Clock.currentTimeMillis
  const status = refusedStatus(resource, reason, message, now)
  if (resource.status !== undefined && Equal.equals(resource.status, status)) return true
  const { name, namespace, resourceVersion } = resource.metadata
  yield* recordEvent(refusedEvent(resource, reason, message, now))
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  const object = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata, status }
  return yield* kube.applyStatus(WatchedDeployment, object).pipe(
    Effect.as(true),
    Effect.catchIf(isStale, () => Effect.succeed(false))
  )
})
