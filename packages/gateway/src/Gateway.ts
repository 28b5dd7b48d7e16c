import type { RequestListener, ServerResponse } from "node:http"
import { Ids } from "@seatrial/domain"
import { malformedHead } from "@seatrial/http"
import { ApiKeys, DatabaseSchema, type Route, Routes } from "@seatrial/store"
import { Clock, Context, Effect, FiberSet, Layer } from "effect"
import { makeAdmit } from "./admit.ts"
import { answerIndex } from "./answerIndex.ts"
import { makeAuthenticate } from "./authenticate.ts"
import { Concurrency } from "./Concurrency.ts"
import { makeCrossOrigin } from "./crossOrigin.ts"
import { EngineClient } from "./EngineClient.ts"
import { discardRest, type Exchange, makeAnswerErrors } from "./Exchange.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { inferenceMethods, methodsAt, otherMethodsAt } from "./gatewayPaths.ts"
import { Inference } from "./Inference.ts"
import { ImageFetcher } from "./images/ImageFetcher.ts"
import { layerReachability } from "./layerReachability.ts"
import { layerSweeper } from "./layerSweeper.ts"
import { malformedRefusal } from "./malformedRequests.ts"
import { Observer } from "./observability/Observer.ts"
import { makeOtherPaths } from "./otherPaths.ts"
import { pathOf } from "./pathOf.ts"
import { RequestRates } from "./RequestRates.ts"
import { methodNotAllowed, notFound } from "./refusals.ts"
import { Routing } from "./routing/Routing.ts"
import { isEndpoint } from "./vocabulary/endpoints.ts"
import { LargeBodies } from "./vocabulary/LargeBodies.ts"

const answerReadiness = (response: ServerResponse, problem: string | null) =>
  response
    .writeHead(problem === null ? 200 : 503, { "content-type": "application/json" })
    .end(JSON.stringify(problem === null ? { status: "ok" } : { status: "unavailable", message: problem }))

/** Answers liveness, readiness and the index. Returns false for any other request. */
const answerService = ({ request, response }: Exchange, path: string, problem: () => string | null): boolean => {
  if (path === "/healthz") response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
  else if (path === "/readyz") answerReadiness(response, problem())
  else if (path === "/" && (request.method === "GET" || request.method === "HEAD")) answerIndex(request, response)
  else return false
  return true
}

/** The parts that inference and all other paths share. */
const makeShared = Effect.gen(function* () {
  const config = yield* GatewayConfig
  const keys = yield* ApiKeys
  const routes = yield* Routes
  const run = yield* FiberSet.makeRuntime()
  return {
    run,
    authenticate: makeAuthenticate(keys, config.trustedProxies),
    rates: new RequestRates(config.rates),
    concurrency: new Concurrency(config),
    reportDemand: (route: Route) => {
      if (route.mayIdle) run(routes.use(route))
    }
  }
})

/** Decides what answers a request. */
const makeHandle = Effect.gen(function* () {
  const largeBodies = yield* LargeBodies
  const shared = yield* makeShared
  const { authenticate, concurrency, rates, run } = shared
  const clock = yield* Clock.Clock
  const schema = yield* DatabaseSchema
  const otherPath = yield* makeOtherPaths
  const admit = yield* makeAdmit({ ...shared, largeBodies })
  const problem = () => schema.problem()
  const { answerFault, answerRefusal } = makeAnswerErrors(yield* Observer)

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

  const handleOther = (exchange: Exchange, path: string, methods: string) => {
    const { method } = exchange.request
    if (method === "OPTIONS") exchange.response.writeHead(204, { allow: methods }).end()
    else if (method === undefined || !methods.includes(method)) answerRefusal(exchange, "other", methodNotAllowed(method ?? "", methods))
    else run(Effect.catchCause(answerOther(exchange, path), (cause) => answerFault(exchange, "other", cause)))
  }

  return (exchange: Exchange) => {
    const { request, response } = exchange
    const path = pathOf(request.url)
    const malformed = malformedHead(request)
    if (malformed !== null) return answerRefusal(exchange, "other", malformedRefusal(malformed))
    if (answerService(exchange, path, problem)) return
    const otherMethods = otherMethodsAt(path)
    if (otherMethods !== null) return handleOther(exchange, path, otherMethods)
    if (!isEndpoint(path)) return answerRefusal(exchange, "other", notFound(`The path ${request.method} ${path.slice(0, 128)} does not exist.`))
    if (request.method === "OPTIONS") response.writeHead(204, { allow: inferenceMethods }).end()
    else if (request.method !== "POST") answerRefusal(exchange, path, methodNotAllowed(request.method ?? "", inferenceMethods))
    else run(Effect.catchCause(admit(exchange, path), (cause) => answerFault(exchange, path, cause)))
  }
})

/** The inference data path: checks a request, routes it, and passes the engine's answer through. */
export class Gateway extends Context.Service<Gateway, { readonly handler: RequestListener }>()("seatrial/Gateway") {
  static readonly layerHandler = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const { corsOrigins } = yield* GatewayConfig
      const clock = yield* Clock.Clock
      const ids = yield* Ids
      const handle = yield* makeHandle
      const crossOrigin = makeCrossOrigin(corsOrigins, methodsAt)

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
    Layer.provide([EngineClient.layer, ImageFetcher.layer, LargeBodies.layer, Observer.layer]),
    Layer.provide(GatewayConfig.layer)
  )
}
