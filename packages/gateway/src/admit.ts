import type { InferencePath } from "@seatrial/domain"
import { ApiKeys, type Caller, Metering, type RequestRefusal } from "@seatrial/store"
import { Clock, Effect } from "effect"
import type { Admission } from "./Admission.ts"
import { BodyBudget } from "./BodyBudget.ts"
import type { Exchange } from "./Exchange.ts"
import { elapsed } from "./elapsed.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { Inference } from "./Inference.ts"
import { onStopping } from "./listen.ts"
import { requestError } from "./Outcome.ts"
import { inferenceMetrics } from "./observability/InferenceMetrics.ts"
import { makePrepareRequest, type PrepareOptions } from "./prepareRequest.ts"
import { RecordedRefusals } from "./RecordedRefusals.ts"
import { RequestAbort } from "./RequestAbort.ts"
import type { Refusal } from "./refusals.ts"

interface AdmitOptions extends PrepareOptions {
  readonly authenticate: (request: Exchange["request"]) => Effect.Effect<Caller, Refusal> | Caller
}

/** Records refusals, unless enough refusals of the same kind are recorded already. */
const makeRecordRefusal = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const metering = yield* Metering
  const recordedRefusals = new RecordedRefusals()
  return ({ caller, endpoint, exchange: { id, startedAt }, route, streamed }: Admission, error: Refusal) => {
    const refusal: RequestRefusal = {
      id,
      orgId: caller.orgId,
      keyId: caller.keyId,
      endpoint,
      streamed,
      modelId: route?.modelId ?? null,
      model: route?.model ?? null,
      statusCode: error.status,
      latencyMs: elapsed(startedAt),
      error: requestError(error)
    }
    if (recordedRefusals.admit(refusal, clock.currentTimeMillisUnsafe())) return metering.refuse(refusal)
    inferenceMetrics.unrecorded(error.code)
    return Effect.void
  }
})

/** A request whose caller is authenticated. */
const openAdmission = (bodies: BodyBudget, exchange: Exchange, caller: Caller, endpoint: InferencePath): Admission => {
  const { response } = exchange
  const requestAbort = new RequestAbort()
  response.once("close", () => requestAbort.abort("gone"))
  onStopping(response, () => requestAbort.abort("stopped"))
  // If the caller left during the key look-up, `close` has been emitted already.
  if (response.destroyed) requestAbort.abort("gone")
  return {
    exchange,
    caller,
    endpoint,
    requestAbort,
    share: bodies.open(caller.orgId),
    unreadFrames: bodies.open(caller.orgId),
    streamed: null,
    route: null,
    routedRequest: null,
    isCounted: false,
    isServed: false,
    end: undefined,
    downloads: undefined,
    digests: null
  }
}

/**
 * Admits and serves inference requests. Once the caller is authenticated, every outcome is recorded, except for
 * repeated refusals.
 */
export const makeAdmit = Effect.fnUntraced(function* (options: AdmitOptions) {
  const { authenticate, concurrency, reportDemand } = options
  const config = yield* GatewayConfig
  const keys = yield* ApiKeys
  const inference = yield* Inference
  const recordRefusal = yield* makeRecordRefusal
  const prepareRequest = yield* makePrepareRequest(options)
  const bodies = new BodyBudget(config.bodiesBytes)

  const release = ({ caller, end, isCounted, routedRequest, route, share, unreadFrames }: Admission) => {
    clearTimeout(end)
    routedRequest?.leave()
    if (isCounted) concurrency.give(caller)
    share.release()
    unreadFrames.release()
    if (routedRequest !== null && route !== null && route.endpoints.length > 0) reportDemand(route)
  }

  return Effect.fnUntraced(function* (exchange: Exchange, endpoint: InferencePath) {
    const known = authenticate(exchange.request)
    const caller = Effect.isEffect(known) ? yield* known : known
    const admission = openAdmission(bodies, exchange, caller, endpoint)
    const { requestAbort } = admission
    const unwatch = keys.watch(caller, () => {
      if (!admission.isServed) requestAbort.abort("revoked")
      else admission.end = setTimeout(() => requestAbort.abort("revoked"), config.revokedMillis)
    })
    yield* Effect.onExit(
      // `flatMap` releases what only admission needed: bodies may be large, and streams long.
      Effect.flatMap(
        Effect.tapError(prepareRequest(admission), (error) => Effect.uninterruptible(recordRefusal(admission, error))),
        inference.serve
      ),
      () => {
        unwatch()
        release(admission)
        return Effect.void
      }
    )
  })
})
