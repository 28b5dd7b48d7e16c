import type { ReceiptDigests } from "@seatrial/domain"
import type { Metering, RequestStart } from "@seatrial/store"
import { elapsed, round } from "./elapsed.ts"
import { type Outcome, requestError } from "./Outcome.ts"
import type { Admitted } from "./Work.ts"

/** Commits the record of a request's end. */
export const makeRecordOutcome =
  (metering: Metering["Service"]) =>
  (
    // After a retry, the engine is another one than at the start.
    { routedRequest: { engine, route }, startedAt }: Admitted,
    start: RequestStart,
    { error, finishReason, note, state, status, usage }: Outcome,
    firstContentAt: number | null,
    digests: ReceiptDigests | null
  ) =>
    state === "refused" && error !== null
      ? metering.refuse({
          id: start.id,
          orgId: start.orgId,
          keyId: start.keyId,
          endpoint: start.endpoint,
          streamed: start.streamed,
          modelId: start.modelId,
          model: start.model,
          engine,
          statusCode: status,
          latencyMs: elapsed(startedAt),
          error: requestError(error)
        })
      : metering.end({
          ...start,
          engine,
          statusCode: status,
          usage,
          ttftMs: firstContentAt === null ? null : round(firstContentAt - startedAt),
          latencyMs: elapsed(startedAt),
          finishReason,
          error: error === null ? null : requestError(error),
          note: usage.clipped ? [note, "The engine reported more cached tokens than the prompt has."].filter((part) => part !== null).join(" ") : note,
          receipt: { prices: route.prices, hfRevision: route.hfRevision, engineVersion: route.engineVersion, digests }
        })
