import { digestHeader } from "@seatrial/domain"
import { type Caller, type Route, Routes } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import type { Admission } from "./Admission.ts"
import type { Concurrency } from "./Concurrency.ts"
import { makeCheckBody } from "./checkBody.ts"
import { traceparentOf } from "./Exchange.ts"
import { elapsed } from "./elapsed.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { makeMayCost } from "./mayCost.ts"
import { ReceiptDigests } from "./ReceiptDigests.ts"
import type { RequestRates } from "./RequestRates.ts"
import { readBody } from "./readBody.ts"
import { keyEnded, missingScope, modelNotFound, Refusal } from "./refusals.ts"
import { patienceOf } from "./routing/patienceOf.ts"
import type { RoutedRequest } from "./routing/RoutedRequest.ts"
import { Routing } from "./routing/Routing.ts"
import { tooManyChoices } from "./tooManyChoices.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"
import { LargeBody, type LargeBodyLanes, largeBody } from "./vocabulary/LargeBodies.ts"
import { type ParsedBody, parseBody, streamOf } from "./vocabulary/parseBody.ts"
import type { Admitted } from "./Work.ts"

/** Placeholder for a body that was released. */
const unparsed: ParsedBody = { model: "", members: {} }

export interface PrepareOptions {
  readonly largeBodies: LargeBodyLanes
  readonly rates: RequestRates
  readonly concurrency: Concurrency
  /** Reports demand for the route, if the model may scale to zero. */
  readonly reportDemand: (route: Route) => void
}

/** The request with its engine. `releaseBody` drops the body. */
const admittedOf = (admission: Admission, checked: CheckedRequest, routedRequest: RoutedRequest): Admitted => {
  const { caller, digests, exchange, requestAbort, share, unreadFrames } = admission
  const { id, request, response, startedAt } = exchange
  const releaseBody = () => {
    checked.engineBody = ""
    checked.withoutImages = null
    admission.downloads = undefined
    share.release()
  }
  return {
    id,
    caller,
    checked,
    routedRequest,
    response,
    requestAbort,
    startedAt,
    traceparent: traceparentOf(request),
    digests,
    reserve: share.take,
    unreadFrames,
    releaseBody
  }
}

/** Checks everything that does not need the body. */
const makeCheckCaller =
  ({ concurrency, rates }: PrepareOptions, clock: Clock.Clock) =>
  (admission: Admission): Refusal | null => {
    const { caller, exchange } = admission
    const tooMany = rates.draw(caller, clock.currentTimeMillisUnsafe())
    if (tooMany !== null) return tooMany
    if (!caller.scopes.has("inference:write")) return missingScope("inference:write")
    const full = concurrency.take(caller)
    if (full !== null) return full
    admission.isCounted = true
    if (exchange.request.headers[digestHeader] === undefined) return null
    const digests = ReceiptDigests.open(exchange.request.headers, exchange.response)
    if (digests instanceof Refusal) return digests
    admission.digests = digests
    return null
  }

/** Finds the route of a model. Routes with an engine are usually in memory. */
const makeRouteLookUp = (routes: Routes["Service"]) => {
  /** The route of a model with an engine, if it is in memory. */
  const knownRoute = ({ orgId }: Caller, model: string): Route | null => {
    const route = routes.known(orgId, model)
    return route === undefined || route.endpoints.length === 0 ? null : route
  }

  const findRoute = Effect.fnUntraced(function* ({ orgId }: Caller, model: string) {
    const route = yield* routes.find(orgId, model)
    return Option.isSome(route) ? route.value : yield* modelNotFound(model)
  })

  return { findRoute, knownRoute }
}

/** Checks the body again, for a revision that became current while the request waited. */
const makeCheckAgain = (checkBody: Effect.Success<ReturnType<typeof makeCheckBody>>) =>
  Effect.fnUntraced(function* (admission: Admission, route: Route, body: ParsedBody, received: Buffer | null) {
    admission.route = route
    const parsed = received === null ? body : parseBody(received)
    if (parsed instanceof Refusal) return yield* parsed
    const prepared = checkBody(admission, route, parsed)
    return Effect.isEffect(prepared) ? yield* prepared : prepared
  })

/** All steps from an authenticated request to a slot at an engine. */
export const makePrepareRequest = Effect.fnUntraced(function* (options: PrepareOptions) {
  const { largeBodies, reportDemand } = options
  const config = yield* GatewayConfig
  const checkCaller = makeCheckCaller(options, yield* Clock.Clock)
  const mayCost = yield* makeMayCost
  const { findRoute, knownRoute } = makeRouteLookUp(yield* Routes)
  const routing = yield* Routing
  const checkBody = yield* makeCheckBody(reportDemand)
  const checkAgain = makeCheckAgain(checkBody)

  /** Checked before any engine starts or works. */
  const checkSpending = (caller: Caller, route: Route): Effect.Effect<void, Refusal> => {
    const refused = mayCost(caller, route)
    if (refused === null) return Effect.void
    if (Effect.isEffect(refused)) return Effect.flatMap(refused, (later) => later ?? Effect.void)
    return refused
  }

  /** Waits for a slot at an engine. */
  const awaitSlot = Effect.fnUntraced(function* ({ caller, exchange, requestAbort }: Admission, routedRequest: RoutedRequest) {
    yield* routedRequest.wait({ patience: patienceOf(exchange.request.headers, elapsed(exchange.startedAt)), requestAbort })
    if (caller.spendLimited) yield* checkSpending(caller, routedRequest.route)
  })

  // Defined once, like every generator function that runs per request: V8 gives the generators of each function their
  // own shape, and a new shape costs many times more than the rest.
  return Effect.fnUntraced(function* (admission: Admission): Effect.fn.Return<Admitted, Refusal> {
    const { caller, exchange, requestAbort, share } = admission
    const refused = checkCaller(admission)
    if (refused !== null) return yield* refused
    let received: Buffer | null = yield* readBody(exchange.request, config, share)
    if (admission.digests !== null) yield* admission.digests.hashRequest(received)
    let body = received.length <= largeBody ? parseBody(received) : yield* largeBodies.read(received, caller.orgId, requestAbort)
    if (body instanceof Refusal) return yield* body
    // A large body is parsed from its bytes each time, and holds them itself.
    if (body instanceof LargeBody) received = null
    admission.streamed = streamOf(body.members)
    const route = knownRoute(caller, body.model) ?? (yield* findRoute(caller, body.model))
    admission.route = route
    if (caller.spendLimited) yield* checkSpending(caller, route)
    const prepared = checkBody(admission, route, body)
    let checked = Effect.isEffect(prepared) ? yield* prepared : prepared
    if (requestAbort.reason === "revoked") return yield* keyEnded
    const routedRequest = routing.open(route, { orgId: caller.orgId, members: body.members, streamed: checked.stream, sequences: checked.choices })
    admission.routedRequest = routedRequest
    if (checked.choices > routedRequest.mostSequences) return yield* tooManyChoices(checked, routedRequest.mostSequences)
    if (!routedRequest.enter()) {
      const waiting = awaitSlot(admission, routedRequest)
      // The parsed form may take many times the memory of the text, and the text suffices to parse it again.
      if (received !== null) body = unparsed
      yield* waiting
    }
    if (routedRequest.route.revisionId !== route.revisionId) checked = yield* checkAgain(admission, routedRequest.route, body, received)
    admission.isServed = true
    return admittedOf(admission, checked, routedRequest)
  })
})
