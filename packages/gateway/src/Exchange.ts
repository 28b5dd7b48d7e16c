import type { IncomingMessage, ServerResponse } from "node:http"
import type { RequestId } from "@seatrial/domain"
import { chunkGuardOf } from "@seatrial/http"
import { isOutage, makeOutageLog } from "@seatrial/store"
import { Cause, Effect } from "effect"
import { dialectOf } from "./dialects/dialects.ts"
import type { Observer } from "./observability/Observer.ts"
import { pathOf } from "./pathOf.ts"
import { paceReads } from "./readBody.ts"
import { faultOf, type Refusal, writeRefusal } from "./refusals.ts"

/** One HTTP request and its response. */
export interface Exchange {
  readonly id: RequestId
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startedAt: number
}

export const traceparentOf = ({ headers: { traceparent } }: IncomingMessage): string | undefined => (typeof traceparent === "string" ? traceparent : undefined)

/**
 * Milliseconds for which the rest of an unwanted body is read and dropped. If the connection closes earlier, the caller
 * may not receive the answer.
 */
const linger = 2_000
/** Bytes of it that are read and dropped: as many as the largest body that a gateway accepts by default. */
const mostDropped = 16 * 2 ** 20

/** Reads and drops the rest of the body. */
export const discardRest = (request: IncomingMessage): void => {
  if (request.complete || request.destroyed) return
  const cut = setTimeout(() => request.destroy(), linger)
  request.once("close", () => clearTimeout(cut))
  if (request.listenerCount("data") === 0) paceReads(request)
  let left = mostDropped
  request.on("data", ({ length }: Buffer) => {
    left -= length
    if (left < 0) request.destroy()
  })
  chunkGuardOf(request)?.onTrip(() => request.socket.destroy())
  request.resume()
}

/** Answers requests that did not reach an engine. */
export const makeAnswerErrors = (observer: Observer["Service"]) => {
  const logOutage = makeOutageLog("requests are refused because Postgres does not answer")

  const answerRefusal = ({ id, request, response, startedAt }: Exchange, endpoint: string, error: Refusal): void => {
    observer.refused({ id, endpoint, traceparent: traceparentOf(request), startedAt }, error)
    writeRefusal(response, error, id, dialectOf(pathOf(request.url)))
    // The guard itself closes the connection of a body that tripped it.
    if (chunkGuardOf(request)?.isTripped !== true) discardRest(request)
  }

  const answerFault = (exchange: Exchange, endpoint: string, cause: Cause.Cause<Refusal>): Effect.Effect<void> => {
    const failure = cause.reasons.find(Cause.isFailReason)
    answerRefusal(exchange, endpoint, failure === undefined ? faultOf(Cause.squash(cause)) : failure.error)
    if (failure !== undefined) return Effect.void
    if (isOutage(cause)) return logOutage(cause)
    return Effect.annotateLogs(Effect.logError("a request failed because of a defect", cause), "request_id", exchange.id)
  }

  return { answerRefusal, answerFault }
}
