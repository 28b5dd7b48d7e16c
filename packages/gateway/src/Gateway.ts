import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { digestHeader, Ids, type InferencePath, type RequestId } from "@seatrial/domain"
import { ApiKeys, type Caller, DatabaseSchema, Metering, type RequestRefusal, type Route, Routes } from "@seatrial/store"
import { Cause, Clock, Context, Effect, FiberSet, Layer, Option, Redacted } from "effect"
import { answerIndex } from "./answerIndex.ts"
import type { Admitted } from "./askEngine.ts"
import { makeAuthenticate } from "./authenticate.ts"
import { BodyBudget, type BodyShare } from "./BodyBudget.ts"
import { chunkGuardOf, closeUnread } from "./ChunkGuard.ts"
import { Concurrency } from "./Concurrency.ts"
import { makeCrossOrigin } from "./crossOrigin.ts"
import { dialectOf } from "./dialects/dialects.ts"
import { EngineClient } from "./EngineClient.ts"
import { elapsed } from "./elapsed.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { Inference } from "./Inference.ts"
import { ImageFetcher } from "./images/ImageFetcher.ts"
import { inlineImages } from "./images/inlineImages.ts"
import { layerReachability } from "./layerReachability.ts"
import { layerSweeper } from "./layerSweeper.ts"
import { onStopping } from "./listen.ts"
import { codedByOldVersion, hostless } from "./malformedRequests.ts"
import { makeMayCost } from "./mayCost.ts"
import { requestError } from "./Outcome.ts"
import { inferenceMetrics } from "./observability/InferenceMetrics.ts"
import { Observer } from "./observability/Observer.ts"
import { isOtherPath, makeOtherPaths, methodsOf } from "./otherPaths.ts"
import { pathOf } from "./pathOf.ts"
import { ReceiptDigests } from "./ReceiptDigests.ts"
import { RecordedRefusals } from "./RecordedRefusals.ts"
import { RequestAbort } from "./RequestAbort.ts"
import { RequestRates } from "./RequestRates.ts"
import { paceReads, readBody } from "./readBody.ts"
import { faultOf, keyEnded, methodNotAllowed, missingScope, modelNotFound, notFound, Refusal, writeRefusal } from "./refusals.ts"
import { patienceOf } from "./routing/patienceOf.ts"
import type { RoutedRequest } from "./routing/RoutedRequest.ts"
import { Routing } from "./routing/Routing.ts"
import { CacheSalts } from "./vocabulary/CacheSalts.ts"
import { type CheckedRequest, checkRequest } from "./vocabulary/checkRequest.ts"
import { isEndpoint } from "./vocabulary/endpoints.ts"
import { LargeBodies, LargeBody, largeBody } from "./vocabulary/LargeBodies.ts"
import { type ParsedBody, parseBody, streamOf } from "./vocabulary/parseBody.ts"
import { targetOf } from "./vocabulary/targetOf.ts"

/** Whether the path of a request is an inference path. */
export const isInferencePath = (url: string | undefined): boolean => isEndpoint(pathOf(url))

/** Whether the gateway handles a path. If gateway and API share an address, the API handles all other paths. */
export const isGatewayPath = (url: string | undefined, method = "GET"): boolean => isInferencePath(url) || isOtherPath(pathOf(url), method)

/**
 * Milliseconds for which the rest of an unwanted body is read and dropped. If the connection closes earlier, the caller
 * may not receive the answer.
 */
const linger = 2_000

const discardRest = (request: IncomingMessage) => {
  if (request.complete || request.destroyed) return
  const cut = setTimeout(() => request.destroy(), linger)
  request.once("close", () => clearTimeout(cut))
  if (request.listenerCount("data") === 0) paceReads(request)
  chunkGuardOf(request)?.onTrip(() => request.socket.destroy())
  request.resume()
}

const answerReadiness = (response: ServerResponse, problem: string | null) =>
  response
    .writeHead(problem === null ? 200 : 503, { "content-type": "application/json" })
    .end(JSON.stringify(problem === null ? { status: "ok" } : { status: "unavailable", message: problem }))

const traceparentOf = ({ headers: { traceparent } }: IncomingMessage) => (typeof traceparent === "string" ? traceparent : undefined)

/** Node joins repeated headers with a comma. */
const isOneHost = (host: string | undefined) => host !== undefined && !host.includes(",")

/** Placeholder for a body that was released. */
const unparsed: ParsedBody = { model: "", members: {} }

/** Methods of the inference paths. */
const allow = "OPTIONS, POST"

/** Methods of the index. */
const reading = "GET, HEAD, OPTIONS"

/** The methods of a path; null if the path does not exist. */
const methodsAt = (path: string): string | null => (path === "/" ? reading : isEndpoint(path) ? allow : methodsOf(path))

/** One HTTP request and its response. */
interface Exchange {
  readonly id: RequestId
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startedAt: number
}

/** A request before it reaches an engine: the data that a refusal reports, and the resources to release at the end. */
interface Admission {
  readonly exchange: Exchange
  readonly caller: Caller
  readonly endpoint: InferencePath
  readonly requestAbort: RequestAbort
  readonly share: BodyShare
  streamed: boolean | null
  route: Route | null
  routedRequest: RoutedRequest | null
  /** Whether the request counts toward the concurrency of its caller. */
  isCounted: boolean
  /** Whether the request has an engine. Then it may continue for a while after its key ended. */
  isServed: boolean
  /** Ends the request after its key ended. */
  end: NodeJS.Timeout | undefined
  downloads: Map<string, Buffer> | undefined
  /** Null if the caller did not ask for digests in the receipt. */
  digests: ReceiptDigests | null
}

/** The inference data path: checks a request, routes it, and passes the engine's answer through. */
export class Gateway extends Context.Service<Gateway, { readonly handler: RequestListener }>()("seatrial/Gateway") {
  static readonly layerHandler = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const keys = yield* ApiKeys
      const clock = yield* Clock.Clock
      const schema = yield* DatabaseSchema
      const fetcher = yield* ImageFetcher
      const ids = yield* Ids
      const inference = yield* Inference
      const mayCost = yield* makeMayCost
      const metering = yield* Metering
      const observer = yield* Observer
      const routes = yield* Routes
      const routing = yield* Routing
      const concurrency = new Concurrency(config)
      const rates = new RequestRates(config.rates)
      const recordedRefusals = new RecordedRefusals()
      const bodies = new BodyBudget(config.bodiesBytes)
      const salts = new CacheSalts(Redacted.value(config.cacheSecret))
      const otherPath = yield* makeOtherPaths
      const largeBodies = yield* Effect.acquireRelease(
        Effect.sync(() => new LargeBodies()),
        (open) => Effect.sync(() => open.close())
      )
      const run = yield* FiberSet.makeRuntime()

      const crossOrigin = makeCrossOrigin(config.corsOrigins, methodsAt)
      const authenticate = makeAuthenticate(keys, config.trustedProxies)

      /** Reports demand for the route, if the model may scale to zero. */
      const reportDemand = (route: Route) => {
        if (route.mayIdle) run(routes.use(route))
      }

      /**
       * A refused request starts no engine. An engine that is scaled to zero starts while the images are downloaded.
       */
      const withImages = (admission: Admission, to: Route, checked: CheckedRequest): Effect.Effect<CheckedRequest, Refusal> | CheckedRequest => {
        reportDemand(to)
        if (checked.images.length === 0) return checked
        return inlineImages(fetcher, admission.caller.orgId, to.capabilities.image_input, checked, admission)
      }

      /** Checked before any engine starts or works. */
      const checkSpending = (caller: Caller, route: Route): Effect.Effect<void, Refusal> => {
        const refused = mayCost(caller, route)
        if (refused === null) return Effect.void
        if (Effect.isEffect(refused)) return Effect.flatMap(refused, (later) => later ?? Effect.void)
        return refused
      }

      const prepare = (admission: Admission, to: Route, body: ParsedBody): Effect.Effect<CheckedRequest, Refusal> | CheckedRequest => {
        const { caller, endpoint, exchange } = admission
        const target = targetOf(to, caller, exchange.id, salts)
        if (body instanceof LargeBody) {
          return Effect.flatMap(body.check(endpoint, target), (checked) => {
            const complete = withImages(admission, to, checked)
            return Effect.isEffect(complete) ? complete : Effect.succeed(complete)
          })
        }
        const checked = checkRequest(endpoint, body, target)
        return checked instanceof Refusal ? checked : withImages(admission, to, checked)
      }

      // Defined once, like every generator function that runs per request: V8 gives the generators of each function
      // their own shape, and a new shape costs many times more than the rest.
      /** All steps from the request to a slot at an engine. */
      const prepareRequest = Effect.fnUntraced(function* (admission: Admission): Effect.fn.Return<Admitted, Refusal> {
        const { caller, requestAbort, exchange, share } = admission
        const { id, request, response, startedAt } = exchange
        const tooMany = rates.draw(caller, clock.currentTimeMillisUnsafe())
        if (tooMany !== null) return yield* tooMany
        if (!caller.scopes.has("inference:write")) return yield* missingScope("inference:write")
        const full = concurrency.take(caller)
        if (full !== null) return yield* full
        admission.isCounted = true
        if (request.headers[digestHeader] !== undefined) {
          const digests = ReceiptDigests.open(request.headers, response)
          if (digests instanceof Refusal) return yield* digests
          admission.digests = digests
        }
        let received: Buffer | null = yield* readBody(request, config, share)
        if (admission.digests !== null) yield* admission.digests.hashRequest(received)
        let body = received.length <= largeBody ? parseBody(received) : yield* largeBodies.read(received, caller.orgId, requestAbort)
        if (body instanceof Refusal) return yield* body
        // A large body is parsed from its bytes each time, and holds them itself.
        if (body instanceof LargeBody) received = null
        admission.streamed = streamOf(body.members)
        let route = routes.known(caller.orgId, body.model) ?? null
        if (route === null || route.endpoints.length === 0) route = Option.getOrNull(yield* routes.find(caller.orgId, body.model))
        if (route === null) return yield* modelNotFound(body.model)
        admission.route = route
        if (caller.spendLimited) yield* checkSpending(caller, route)
        let prepared = prepare(admission, route, body)
        if (prepared instanceof Refusal) return yield* prepared
        let checked = Effect.isEffect(prepared) ? yield* prepared : prepared
        if (requestAbort.reason === "revoked") return yield* keyEnded
        const routedRequest = routing.open(route, { orgId: caller.orgId, members: body.members, streamed: checked.stream })
        admission.routedRequest = routedRequest
        if (!routedRequest.enter()) {
          const waiting = routedRequest.wait({ patience: patienceOf(request.headers, elapsed(startedAt)), requestAbort })
          // The parsed form may take many times the memory of the text, and the text suffices to parse it again.
          if (received !== null) body = unparsed
          yield* waiting
          if (caller.spendLimited) yield* checkSpending(caller, routedRequest.route)
        }
        if (routedRequest.route.revisionId !== route.revisionId) {
          // The revision changed while the request waited, so the request is checked against the capabilities of the
          // new one.
          route = routedRequest.route
          admission.route = route
          if (received !== null) body = parseBody(received)
          if (body instanceof Refusal) return yield* body
          prepared = prepare(admission, route, body)
          checked = Effect.isEffect(prepared) ? yield* prepared : prepared
        }
        admission.isServed = true
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
          digests: admission.digests,
          releaseBody
        }
      })

      /** Records a refusal, unless enough refusals of its kind are recorded already. */
      const refuse = ({ caller, endpoint, exchange: { id, startedAt }, route, streamed }: Admission, error: Refusal) => {
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

      const releaseAll = ({ caller, routedRequest, isCounted, route, share }: Admission) => {
        routedRequest?.leave()
        if (isCounted) concurrency.give(caller)
        share.release()
        if (routedRequest !== null && route !== null && route.endpoints.length > 0) reportDemand(route)
      }

      /** Once the caller is authenticated, every outcome is recorded, except for repeated refusals. */
      const admit = Effect.fnUntraced(function* (exchange: Exchange, endpoint: InferencePath) {
        const { request, response } = exchange
        const known = authenticate(request)
        const caller = Effect.isEffect(known) ? yield* known : known
        const requestAbort = new RequestAbort()
        response.once("close", () => requestAbort.abort("gone"))
        onStopping(response, () => requestAbort.abort("stopped"))
        // If the caller left during the key look-up, `close` has been emitted already.
        if (response.destroyed) requestAbort.abort("gone")
        const share = bodies.open(caller.orgId)
        const admission: Admission = {
          exchange,
          caller,
          endpoint,
          requestAbort,
          share,
          streamed: null,
          route: null,
          routedRequest: null,
          isCounted: false,
          isServed: false,
          end: undefined,
          downloads: undefined,
          digests: null
        }
        const unwatch = keys.watch(caller, () => {
          if (!admission.isServed) requestAbort.abort("revoked")
          else admission.end = setTimeout(() => requestAbort.abort("revoked"), config.revokedMillis)
        })
        yield* Effect.onExit(
          // `flatMap` releases what only admission needed: bodies may be large, and streams long.
          Effect.flatMap(
            Effect.tapError(prepareRequest(admission), (error) => Effect.uninterruptible(refuse(admission, error))),
            inference.serve
          ),
          () => {
            unwatch()
            clearTimeout(admission.end)
            releaseAll(admission)
            return Effect.void
          }
        )
      })

      const answerOther = Effect.fnUntraced(function* ({ request, response }: Exchange, path: string) {
        const known = authenticate(request)
        const caller = Effect.isEffect(known) ? yield* known : known
        const full = rates.draw(caller, clock.currentTimeMillisUnsafe()) ?? concurrency.take(caller)
        if (full !== null) return yield* full
        const body = yield* Effect.ensuring(
          otherPath(caller, path),
          Effect.sync(() => concurrency.give(caller))
        )
        response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
        discardRest(request)
      })

      /** Answers a request that did not reach an engine. */
      const answerRefusal = ({ id, request, response, startedAt }: Exchange, endpoint: string, error: Refusal) => {
        observer.refused({ id, endpoint, traceparent: traceparentOf(request), startedAt }, error)
        writeRefusal(response, error, id, dialectOf(pathOf(request.url)))
        if (chunkGuardOf(request)?.isTripped === true) closeUnread(request, response)
        else discardRest(request)
      }

      const answerFault = (exchange: Exchange, endpoint: string, cause: Cause.Cause<Refusal>) => {
        const failure = cause.reasons.find(Cause.isFailReason)
        answerRefusal(exchange, endpoint, failure === undefined ? faultOf(Cause.squash(cause)) : failure.error)
        return failure === undefined
          ? Effect.annotateLogs(Effect.logError("a request failed because of a defect", cause), "request_id", exchange.id)
          : Effect.void
      }

      const handle = (exchange: Exchange) => {
        const { request, response } = exchange
        const path = pathOf(request.url)
        if (request.httpVersion === "1.1" && !isOneHost(request.headers.host)) return answerRefusal(exchange, "other", hostless)
        if (request.httpVersion === "1.0" && request.headers["transfer-encoding"] !== undefined) return answerRefusal(exchange, "other", codedByOldVersion)
        if (path === "/healthz") return response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
        if (path === "/readyz") return answerReadiness(response, schema.problem())
        if (path === "/" && (request.method === "GET" || request.method === "HEAD")) return answerIndex(request, response)
        const otherMethods = path === "/" ? reading : methodsOf(path)
        if (otherMethods !== null) {
          if (request.method === "OPTIONS") return response.writeHead(204, { allow: otherMethods }).end()
          if (request.method === undefined || !otherMethods.includes(request.method))
            return answerRefusal(exchange, "other", methodNotAllowed(request.method ?? "", otherMethods))
          return run(Effect.catchCause(answerOther(exchange, path), (cause) => answerFault(exchange, "other", cause)))
        }
        if (!isEndpoint(path)) return answerRefusal(exchange, "other", notFound(`The path ${request.method} ${path.slice(0, 128)} does not exist.`))
        if (request.method === "OPTIONS") return response.writeHead(204, { allow }).end()
        if (request.method !== "POST") return answerRefusal(exchange, path, methodNotAllowed(request.method ?? "", allow))
        run(Effect.catchCause(admit(exchange, path), (cause) => answerFault(exchange, path, cause)))
      }

      return Gateway.of({
        handler: (request, response) => {
          response.on("error", () => response.destroy())
          const id = ids.requestId(clock.currentTimeMillisUnsafe())
          response.setHeader("x-request-id", id)
          response.setHeader("request-id", id)
          crossOrigin(request, response)
          handle({ id, request, response, startedAt: performance.now() })
        }
      })
    })
  )

  static readonly layer = Layer.mergeAll(Gateway.layerHandler.pipe(Layer.provide([Inference.layer, Routing.layer])), layerReachability, layerSweeper).pipe(
    Layer.provide([EngineClient.layer, ImageFetcher.layer, Observer.layer]),
    Layer.provide(GatewayConfig.layer)
  )
}
