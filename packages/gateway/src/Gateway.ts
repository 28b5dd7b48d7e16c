import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Ids, type InferencePath, type RequestId } from "@seatrial/domain"
import { ApiKeys, type Caller, Metering, type Route, Routes } from "@seatrial/store"
import { Cause, Clock, Context, Effect, FiberSet, Layer, Option } from "effect"
import { Concurrency } from "./Concurrency.ts"
import { Departure } from "./Departure.ts"
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
import { requestError } from "./Outcome.ts"
import { readBody } from "./readBody.ts"
import { faultOf, invalidApiKey, methodNotAllowed, missingApiKey, missingScope, modelNotFound, notFound, Refusal, writeRefusal } from "./refusals.ts"
import type { Passage } from "./routing/Passage.ts"
import { patienceOf } from "./routing/patienceOf.ts"
import { Routing } from "./routing/Routing.ts"
import { type CheckedRequest, checkRequest } from "./vocabulary/checkRequest.ts"
import { isEndpoint } from "./vocabulary/endpoints.ts"
import { parseBody, streamOf } from "./vocabulary/parseBody.ts"
import { targetOf } from "./vocabulary/targetOf.ts"

/** The path of a request's address. */
export const pathOf = (url: string | undefined): string => (url ?? "/").split("?", 1)[0] ?? "/"

/** Whether a request is the gateway's: where gateway and API share an address, all else is the API's. */
export const isInferencePath = (url: string | undefined): boolean => isEndpoint(pathOf(url))

/** Milliseconds for which the rest of a body that is not wanted is read and dropped: a connection that is closed before may lose the answer on its way. */
const linger = 2_000

const discardRest = (request: IncomingMessage) => {
  if (request.complete || request.destroyed) return
  const cut = setTimeout(() => request.destroy(), linger)
  request.once("close", () => clearTimeout(cut))
  request.resume()
}

const bearer = /^Bearer +(\S+) *$/i

/** The methods that the paths of inference take. */
const allow = "OPTIONS, POST"

/** What came in. */
interface Exchange {
  readonly id: RequestId
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startedAt: number
}

/** The data path of inference: checks a request, routes it, and passes the engine's answer through. */
export class Gateway extends Context.Service<Gateway, { readonly handler: RequestListener }>()("seatrial/Gateway") {
  static readonly layerHandler = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const keys = yield* ApiKeys
      const clock = yield* Clock.Clock
      const fetcher = yield* ImageFetcher
      const ids = yield* Ids
      const inference = yield* Inference
      const metering = yield* Metering
      const routes = yield* Routes
      const routing = yield* Routing
      const concurrency = new Concurrency(config)
      const run = yield* FiberSet.makeRuntime()

      /** From memory where it can be. */
      const authenticate = (request: IncomingMessage): Effect.Effect<Caller, Refusal> | Caller => {
        const header = request.headers.authorization
        if (header === undefined) return missingApiKey
        const token = bearer.exec(header)?.[1]
        const found = token === undefined ? Option.none<Caller>() : keys.identify(token)
        if (Effect.isEffect(found)) return Effect.flatMap(found, (caller) => (Option.isSome(caller) ? Effect.succeed(caller.value) : invalidApiKey))
        return Option.isSome(found) ? found.value : invalidApiKey
      }

      /** Tells that somebody asks for the route, where that matters. */
      const use = (route: Route) => {
        if (route.mayIdle) run(routes.use(route))
      }

      /** From an authenticated caller on, every outcome is recorded. */
      const admit = Effect.fnUntraced(function* ({ id, request, response, startedAt }: Exchange, endpoint: InferencePath) {
        const known = authenticate(request)
        const caller = Effect.isEffect(known) ? yield* known : known
        let route: Route | null = null
        let streamed: boolean | null = null
        let placed = false
        let passage: Passage | null = null
        const departure = new Departure()
        response.once("close", () => departure.abort("gone"))
        onStopping(response, () => departure.abort("stopped"))

        const check = Effect.gen(function* () {
          if (!caller.scopes.has("inference:write")) return yield* missingScope("inference:write")
          const full = concurrency.take(caller)
          if (full !== null) return yield* full
          placed = true
          const body = parseBody(yield* readBody(request, config.maxBody, config.bodyTimeout))
          if (body instanceof Refusal) return yield* body
          streamed = streamOf(body.members)
          route = routes.known(caller.orgId, body.model) ?? null
          if (route === null || route.endpoints.length === 0) route = Option.getOrNull(yield* routes.find(caller.orgId, body.model))
          if (route === null) return yield* modelNotFound(`There is no model ${body.model.slice(0, 128)}.`, "model")
          use(route)
          const prepare = (to: Route): Effect.Effect<CheckedRequest, Refusal> | CheckedRequest => {
            const checked = checkRequest(endpoint, body, targetOf(to, caller, id))
            if (checked instanceof Refusal || checked.images.length === 0) return checked
            return inlineImages(fetcher, caller.orgId, to.capabilities.image_input, checked, departure)
          }
          let prepared = prepare(route)
          let checked = Effect.isEffect(prepared) ? yield* prepared : prepared
          passage = routing.open(route, { orgId: caller.orgId, members: body.members, streamed: checked.stream })
          if (!passage.enter()) yield* passage.wait({ patience: patienceOf(request.headers), departure })
          if (passage.route.revisionId !== route.revisionId) {
            // Another revision took over while the request waited: what that one cannot do is refused too.
            route = passage.route
            prepared = prepare(route)
            checked = Effect.isEffect(prepared) ? yield* prepared : prepared
          }
          return yield* inference.serve({ id, caller, checked, passage, response, departure, startedAt })
        })
        const refuse = (error: Refusal) =>
          metering.refuse({
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
          })
        yield* Effect.onExit(
          Effect.tapError(check, (error) => Effect.uninterruptible(refuse(error))),
          () => {
            passage?.leave()
            if (placed) concurrency.give(caller)
            if (route !== null && route.endpoints.length > 0) use(route)
            return Effect.void
          }
        )
      })

      const tellFault = ({ id, request, response }: Exchange, cause: Cause.Cause<Refusal>) => {
        const dialect = dialectOf(pathOf(request.url))
        const failure = cause.reasons.find(Cause.isFailReason)
        writeRefusal(response, failure === undefined ? faultOf(Cause.squash(cause)) : failure.error, id, dialect)
        discardRest(request)
        return failure === undefined ? Effect.annotateLogs(Effect.logError("a request could not be handled", cause), "request_id", id) : Effect.void
      }

      const handle = (exchange: Exchange) => {
        const { id, request, response } = exchange
        const path = pathOf(request.url)
        if (path === "/healthz" || path === "/readyz") return response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
        const refused = (error: Refusal) => {
          writeRefusal(response, error, id, dialectOf(path))
          discardRest(request)
        }
        if (!isEndpoint(path)) return refused(notFound(`There is no route ${request.method} ${path.slice(0, 128)}.`))
        if (request.method === "OPTIONS") return response.writeHead(204, { allow }).end()
        if (request.method !== "POST") return refused(methodNotAllowed(request.method ?? "", allow))
        run(Effect.catchCause(admit(exchange, path), (cause) => tellFault(exchange, cause)))
      }

      return Gateway.of({
        handler: (request, response) => {
          response.on("error", () => response.destroy())
          const id = ids.requestId(clock.currentTimeMillisUnsafe())
          response.setHeader("x-request-id", id)
          response.setHeader("request-id", id)
          handle({ id, request, response, startedAt: performance.now() })
        }
      })
    })
  )

  static readonly layer = Layer.mergeAll(Gateway.layerHandler.pipe(Layer.provide([Inference.layer, Routing.layer])), layerReachability, layerSweeper).pipe(
    Layer.provide([EngineClient.layer, ImageFetcher.layer]),
    Layer.provide(GatewayConfig.layer)
  )
}
