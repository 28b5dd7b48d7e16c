import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { describeObstacle } from "../decide/materializing.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"
import { type Refusal, refusalReasons } from "../observation/Refusal.ts"
import { objectName } from "../resources/objectNames.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { aboutResource, minuteOf } from "./transitionEvents.ts"

/**
 * The event of a download that cannot start. It counts up if the reason recurs. None if the status shows the reason
 * already. `at`: Unix milliseconds.
 */
export const obstacleEvents = (run: Run, resource: WatchedDeployment, fetch: ObservedFetch, at: number): ReadonlyArray<Event> => {
  const message = run.phase === "materializing" ? describeObstacle(fetch, at) : null
  const { deploymentId, message: earlierMessage } = resource.status ?? {}
  if (message === null || (deploymentId === run.id && earlierMessage?.includes(message) === true)) return []
  const name = `${objectName(run.id)}.downloadblocked`
  return [aboutResource(resource, { name, type: "Warning", action: "Download", reason: "DownloadBlocked", message, at, again: minuteOf(at) })]
}

/**
 * The event of an object that the API server refuses. It counts up if the same message recurs after an object was
 * created. `at`: Unix milliseconds.
 */
export const refusalEvents = (run: Run, resource: WatchedDeployment, refusal: Refusal | null, at: number): ReadonlyArray<Event> => {
  if (refusal === null) return []
  const message = `The cluster refuses ${refusal.object}: ${refusal.message}`
  const reason = refusalReasons[refusal.kind]
  return [
    aboutResource(resource, { name: `${objectName(run.id)}.refused`, type: "Warning", action: "Create", reason, message, at, again: String(refusal.since) })
  ]
}
