import type { RequestId } from "@seatrial/domain"
import { isOutage, Metering, makeOutageLog } from "@seatrial/store"
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { makeAskEngine } from "./askEngine.ts"
import { makeBeginWork } from "./beginWork.ts"
import { closeDigests, deliver, handedOver } from "./deliver.ts"
import { EngineClient } from "./EngineClient.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { failed } from "./Outcome.ts"
import { Observer } from "./observability/Observer.ts"
import { Running } from "./Running.ts"
import { makeRecordOutcome } from "./recordOutcome.ts"
import { faultOf } from "./refusals.ts"
import { LargeBodies } from "./vocabulary/LargeBodies.ts"
import type { Admitted } from "./Work.ts"

/** Logs why a request fails, and gives its error. An outage of Postgres is not logged for each request. */
const makeLogFault = () => {
  const logOutage = makeOutageLog("requests fail because Postgres does not answer")
  return (id: RequestId, message: string) => (cause: Cause.Cause<unknown>) => {
    const log = isOutage(cause) ? logOutage(cause) : Effect.annotateLogs(Effect.logError(message, cause), "request_id", id)
    return Effect.as(log, faultOf(Cause.squash(cause)))
  }
}

/**
 * Sends an admitted request to an engine and its answer to the caller. The record is committed to Postgres before the
 * caller gets the last byte.
 */
export class Inference extends Context.Service<Inference, { readonly serve: (admitted: Admitted) => Effect.Effect<void> }>()("seatrial/Inference") {
  static readonly layer = Layer.effect(
    Inference,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const engine = yield* EngineClient
      const metering = yield* Metering
      const observer = yield* Observer
      const running = yield* Running.make

      const { ask, abortedOutcome } = makeAskEngine(config, engine, yield* LargeBodies)
      const beginWork = makeBeginWork(config, metering, observer, running)
      const record = makeRecordOutcome(metering)
      const logged = makeLogFault()

      // Defined once: V8 gives the generators of each function their own shape, and a new shape costs many times more
      // than the work.
      const serveMasked = Effect.fnUntraced(function* (admitted: Admitted, restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) {
        const { caller, checked, requestAbort, id, routedRequest, response } = admitted
        const work = beginWork(admitted)
        const { dialect, observation, observed, pendingInsert, progress, start, stream } = work
        const outcome = yield* restore(ask(work)).pipe(
          Effect.catchCause((cause) => {
            requestAbort.abort("stopped")
            if (Cause.hasInterruptsOnly(cause)) return abortedOutcome(work)
            return Effect.map(logged(id, "inference failed")(cause), (error) => failed(error, "The gateway failed.", progress))
          })
        )
        stream?.close()
        if (outcome.usage.clipped) {
          yield* Effect.logWarning("the engine reported more cached tokens than its prompt has").pipe(Effect.annotateLogs("request_id", id))
        }
        work.isOver = true
        const unrecorded = pendingInsert.exit !== null && Exit.isFailure(pendingInsert.exit) ? pendingInsert.exit : null
        const delivery = { response, stream, reader: work.reader, dialect, id, body: outcome.body, error: outcome.error }
        const digests = admitted.digests === null ? null : yield* closeDigests(admitted.digests, delivery)
        const committed = yield* (unrecorded ?? record(admitted, start, outcome, progress.firstContentAt, digests)).pipe(
          Effect.as(null),
          Effect.catchCause(logged(id, "the record could not be committed"))
        )
        running.remove(id)
        const { firstContentAt } = progress
        observer.ended(observed, observation, { caller, route: routedRequest.route, streamed: checked.stream, outcome, refusal: committed, firstContentAt })
        routedRequest.leave()
        // The caller must not see a complete answer that is not recorded.
        delivery.error ??= committed
        deliver(delivery)
        yield* restore(handedOver(response, config.writeStallMillis))
      })
      const serve = (admitted: Admitted) => Effect.uninterruptibleMask((restore) => serveMasked(admitted, restore))

      return Inference.of({ serve })
    })
  )
}
