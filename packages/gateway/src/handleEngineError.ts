import { readEngineError, roomLeft } from "./engineError.ts"
import { failed, type Outcome, refused } from "./Outcome.ts"
import { routingMetrics } from "./observability/RoutingMetrics.ts"
import { engineFailed, modelOverloaded } from "./refusals.ts"
import { cutAnswer } from "./vocabulary/answerLimit.ts"

import type { Retry, Work } from "./Work.ts"

/**
 * Handles an engine error before the first frame. Only a failure of the engine itself may have cost work and counts
 * against the engine. `status` is the HTTP status of the answer.
 */
export const handleEngineError = (body: string, status: number, work: Work): Outcome | Retry => {
  const { checked, routedRequest } = work.admitted
  const room = work.cut ? null : roomLeft(body)
  const shorter = room === null ? null : cutAnswer(checked.engineBody, room)
  if (shorter !== null) {
    work.cut = true
    routingMetrics.retried(routedRequest.route.model, "cut")
    checked.engineBody = shorter
    return { retry: "cut" }
  }
  const error = readEngineError(body, status, { endpoint: checked.endpoint, maxModelLen: routedRequest.route.maxModelLen })
  if (error === modelOverloaded) return { retry: "full", outcome: refused(error) }
  if (error !== engineFailed) return refused(error)
  routedRequest.failed()
  return failed(error, "The engine failed.", work.progress)
}
