import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { isServed } from "../observation/isServed.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { objectName } from "../resources/objectNames.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { moveStopped } from "./modelVerdicts.ts"
import { aboutResource, minuteOf } from "./transitionEvents.ts"

/** Reasons of `Available` if a model that should serve does not. */
const outages = new Set(["EngineNotReady", "HostClassMissing", "AnswersDiffer", "GatewayUnreachable", "BalanceUsedUp", "BillingSuspended"])

const conditionOf = (status: ModelDeploymentStatus, wanted: string) => status.conditions?.find(({ type }) => type === wanted)

interface Input {
  readonly run: Run
  readonly resource: WatchedDeployment
  /** The status that is about to be written. */
  readonly status: ModelDeploymentStatus
  /** The engine's pod. */
  readonly pod: ObservedPod | null
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * The condition `Available` as the status shows it now, and as it will. Null if its reason stays, if the run was not
 * shown as activated, or if it does not serve.
 */
const availableChange = ({ resource: { status: earlierStatus }, run, status }: Input) => {
  if (earlierStatus?.deploymentId !== run.id || earlierStatus.phase !== "activated" || !isServed({ run })) return null
  const before = conditionOf(earlierStatus, "Available")
  const after = conditionOf(status, "Available")
  return before === undefined || after === undefined || before.reason === after.reason ? null : { before, after }
}

const outageMessage = ({ pod, status }: Input, { before, after }: NonNullable<ReturnType<typeof availableChange>>): string => {
  const isNewPod = before.status === "True" && pod !== null && pod.createdAt > Date.parse(before.lastTransitionTime)
  const newPod = isNewPod ? "The engine's pod was deleted, and a new one was created. " : ""
  const why = status.cause === undefined ? "" : ` (${status.cause.object}, ${status.cause.reason}: ${status.cause.message})`
  return `${newPod}${status.message ?? after.message}${why}`
}

/** The event of a move to a new revision that has just stopped. */
const moveEvents = ({ now, resource, run, status }: Input): ReadonlyArray<Event> => {
  const after = conditionOf(status, "Progressing")
  const before = resource.status?.deploymentId === run.id ? conditionOf(resource.status, "Progressing") : undefined
  if (after?.reason !== moveStopped || before?.reason === moveStopped) return []
  const name = `${objectName(run.id)}.${moveStopped.toLowerCase()}`
  return [aboutResource(resource, { name, type: "Warning", action: "Serve", reason: moveStopped, message: after.message, at: now, again: minuteOf(now) })]
}

/**
 * The event of a serving model that becomes unavailable, whose problem changes, or that serves again. None if the status
 * shows that already.
 */
const availableEvents = (input: Input): ReadonlyArray<Event> => {
  const { now, resource, run } = input
  const change = availableChange(input)
  if (change === null) return []
  const { after, before } = change
  // This bounds the events of an engine that alternates between ready and not ready.
  const again = minuteOf(now)
  const event = (kind: string, type: "Normal" | "Warning", reason: string, message: string) =>
    aboutResource(resource, { name: `${objectName(run.id)}.${kind}`, type, action: "Serve", reason, message, at: now, again })
  // A start that goes on is not a new outage.
  const isOutage = outages.has(after.reason) && (before.status === "True" || after.reason !== "EngineNotReady")
  if (isOutage) return [event(after.reason.toLowerCase(), "Warning", after.reason, outageMessage(input, change))]
  const isRecovery = after.status === "True" && outages.has(before.reason)
  return isRecovery ? [event("serving", "Normal", "Serving", "The engine serves again.")] : []
}

/** The events of a serving model: its engine, and its move to this revision. None if the status shows them already. */
export const servingEvents = (input: Input): ReadonlyArray<Event> => [...availableEvents(input), ...moveEvents(input)]
