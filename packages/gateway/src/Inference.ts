import type { RequestId } from "@seatrial/domain"
import { Metering, type RequestStart } from "@seatrial/store"
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { makeAskEngine } from "./askEngine.ts"
import { closeDigests, deliver, handedOver } from "./deliver.ts"
import { dialects } from "./dialects/dialects.ts"
import { EngineClient } from "./EngineClient.ts"
import { EventStream } from "./EventStream.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { failed } from "./Outcome.ts"
import { Observer } from "./observability/Observer.ts"
import { PendingInsert } from "./PendingInsert.ts"
import { Progress } from "./Progress.ts"
import { Running } from "./Running.ts"
import { makeRecordOutcome } from "./recordOutcome.ts"
import { faultOf } from "./refusals.ts"
import { LargeBodies } from "./vocabulary/LargeBodies.ts"
import type { Admitted, Work } from "./Work.ts"

const startOf = ({ caller, checked, id, routedRequest: { route } }: Admitted): RequestStart => ({
  id,
  orgId: caller.orgId,
  keyId: caller.keyId,
  endpoint: checked.endpoint,
  streamed: checked.stream,
  modelId: route.modelId,
  model: route.model,
  revisionId: route.revisionId
})

const logged = (id: RequestId, message: string) => (cause: Cause.Cause<unknown>) =>
  Effect.logError(message, cause).pipe(Effect.annotateLogs("request_id", id), Effect.as(faultOf(Cause.squash(cause))))

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

      const record = makeRecordOutcome(metering)

      // Defined once: V8 gives the generators of each function their own shape, and a new shape costs many times more
      // than the work.
      const serveMasked = Effect.fnUntraced(function* (admitted: Admitted, restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) {
        const { caller, checked, requestAbort, id, routedRequest, response } = admitted
        const dialect = dialects[checked.endpoint]
        const observed = { id, endpoint: checked.endpoint, traceparent: admitted.traceparent, startedAt: admitted.startedAt }
        const observation = observer.begin(observed, caller, routedRequest.route)
        const progress = new Progress(dialect.usageOf, (seconds) => observation.series.betweenTokens.observe(seconds, id))
        const { heartbeatMillis, writeStallMillis } = config
        const onStall = () => requestAbort.abort("gone")
        const stream = checked.stream
          ? new EventStream({ response, heartbeatMillis, keepAlive: dialect.heartbeat, writeStallMillis, onStall, digests: admitted.digests })
          : null
        const start = startOf(admitted)
        const pendingInsert = new PendingInsert()
        let over = false
        metering.enter(start, (exit) => {
          pendingInsert.settle(exit)
          if (Exit.isFailure(exit)) requestAbort.abort("unrecorded")
          else if (!over) {
            running.add({ id, orgId: caller.orgId }, progress)
            if (!requestAbort.aborted) stream?.open()
          }
        })
        const work: Work = {
          admitted,
          dialect,
          stream,
          reader: dialect.makeReader(checked),
          progress,
          pendingInsert,
          observation,
          cut: false,
          sentAt: null,
          sample: null
        }
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
        over = true
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
        yield* restore(handedOver(response, writeStallMillis))
      })
      const serve = (admitted: Admitted) => Effect.uninterruptibleMask((restore) => serveMasked(admitted, restore))

      return Inference.of({ serve })
    })
  )
}
