import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { ModelDeployment, ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { objectName } from "../resources/objectNames.ts"
import { aboutResource } from "./transitionEvents.ts"

/**
 * The interval for one event of each kind and object, milliseconds. It bounds the events of an engine that alternates
 * between ready and not ready.
 */
const eventIntervalMillis = 60_000

/** Reasons of `Ready` if a model that should serve does not. */
const outages = new Set(["EngineNotReady", "HostClassMissing", "AnswersDiffer", "BalanceUsedUp", "BillingSuspended"])

const readyOf = (status: ModelDeploymentStatus) => status.conditions?.find(({ type }) => type === "Ready")

interface Input {
  readonly run: Run
  readonly resource: ModelDeployment
  /** The status that is about to be written. */
  readonly status: ModelDeploymentStatus
  /** The engine's pod. */
  readonly pod: ObservedPod | null
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * The event of a serving model whose engine becomes unavailable, whose problem changes, or that serves again. None if
 * the status shows that already.
 */
export const servingEvents = ({ now, pod, resource, run, status }: Input): ReadonlyArray<Event> => {
  const shown = resource.status
  if (shown === undefined || shown.deploymentId !== run.id || shown.phase !== "activated") return []
  const before = readyOf(shown)
  const after = readyOf(status)
  if (before === undefined || after === undefined || before.reason === after.reason) return []
  const name = (kind: string) => `${objectName(run.id)}.${kind}`
  const again = String(Math.floor(now / eventIntervalMillis))
  if (outages.has(after.reason) && (before.status === "True" || after.reason !== "EngineNotReady")) {
    const newPod =
      before.status === "True" && pod !== null && pod.createdAt > Date.parse(before.lastTransitionTime)
        ? "The engine's pod was deleted, and a new one was created. "
        : ""
    const why = status.cause === undefined ? "" : ` (${status.cause.reason} of ${status.cause.object}: ${status.cause.message})`
    const message = `${newPod}${status.message ?? after.message}${why}`
    return [aboutResource(resource, { name: name(after.reason.toLowerCase()), type: "Warning", reason: after.reason, message, at: now, again })]
  }
  if (after.status === "True" && outages.has(before.reason)) {
    return [aboutResource(resource, { name: name("serving"), type: "Normal", reason: "Serving", message: "The engine serves again.", at: now, again })]
  }
  return []
}
