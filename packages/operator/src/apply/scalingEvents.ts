import type { RevisionId } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { ActionOf } from "./ActionContext.ts"
import { recordEvent } from "./recordEvent.ts"
import { aboutResource } from "./transitionEvents.ts"

type Step = ActionOf<"SetReplicas">

const why = ({ capacity, peak, reason, requests }: Step): string => {
  if (reason === "limits") return "the limits of the model changed"
  const each = `one engine processes ${capacity.requests} at once`
  return reason === "more"
    ? `${requests} ${requests === 1 ? "request runs or waits" : "requests run or wait"}, and ${each}`
    : `for a while, at most ${peak} ${peak === 1 ? "request" : "requests"} ran or waited, and ${each}`
}

/** What the autoscaler changed, and why. */
export const describeStep = (step: Step): string => `Scaled from ${step.from} to ${step.replicas}: ${why(step)}.`

/** Records as an event of the object that the model returned to its earlier revision. */
export const recordMoveBack = Effect.fnUntraced(function* (resource: WatchedDeployment, to: RevisionId, reason: string) {
  const at = yield* Clock.currentTimeMillis
  const message = `The model returned to the revision ${to}. ${reason} Deploy again to retry the other revision.`
  const about = { name: `${resource.metadata.name}.moved-back`, type: "Warning" as const, action: "MoveBack" as const, reason: "MovedBack" }
  const event = aboutResource(resource, { ...about, message, at, again: String(at) })
  yield* Effect.catch(recordEvent(event), (error) => Effect.logWarning(`the event ${event.reason} could not be recorded: ${error.message}`))
})

/** Records a step of the autoscaler as an event of the object. */
export const recordStep = Effect.fnUntraced(function* (resource: WatchedDeployment, { from, replicas }: Step, message: string) {
  const at = yield* Clock.currentTimeMillis
  const event = aboutResource(resource, {
    name: `${resource.metadata.name}.scaled`,
    type: "Normal",
    action: "Scale",
    reason: replicas > from ? "ScaledUp" : "ScaledDown",
    message,
    at,
    again: String(at)
  })
  yield* Effect.catch(recordEvent(event), (error) => Effect.logWarning(`the event ${event.reason} could not be recorded: ${error.message}`))
})
