import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Ids, type InferencePath, RequestId } from "@seatrial/domain"
import { ApiKeys, type Caller, Metering, type Route, Routes } from "@seatrial/store"
import { Cause, Context, Effect, FiberSet, Layer, Option, Redacted } from "effect"
import { Concurrency } from "./Concurrency.ts"
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
import {
  faultOf,
  invalidApiKey,
  methodNotAllowed,
  missingApiKey,
  missingScope,
  modelNotFound,
  modelStarting,
  notFound,
  Refusal,
  writeRefusal
} from "./refusals.ts"
import { CacheSalts } from "./vocabulary/CacheSalts.ts"
import { checkRequest } from "./vocabulary/checkRequest.ts"
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
      const fetcher = yield* ImageFetcher
      const ids = yield* Ids
      const inference = yield* Inference
      const metering = yield* Metering
      const routes = yield* Routes
      const concurrency = new Concurrency(config)
      const salts = new CacheSalts(Redacted.value(config.cacheSecret))
      const run = yield* FiberSet.makeRuntime()

      const authenticate = Effect.fnUntraced(function* (request: IncomingMessage) {
        const header = request.headers.authorization
        if (header === undefined) return yield* missingApiKey
        const token = /^Bearer +(\S+) *$/i.exec(header)?.[1]
        const caller = token === undefined ? Option.none<Caller>() : yield* keys.authenticate(Redacted.make(token))
        if (Option.isNone(caller)) return yield* invalidApiKey
        return caller.value
      })

      /** From an authenticated caller on, every outcome is recorded. */
      const admit = Effect.fnUntraced(function* ({ id, request, response, startedAt }: Exchange, endpoint: InferencePath, caller: Caller) {
        let route: Route | null = null
        let streamed: boolean | null = null
        const departure = new AbortController()
        response.once("close", () => departure.abort("gone"))
        onStopping(response, () => departure.abort("stopped"))

        const check = Effect.gen(function* () {
          if (!caller.scopes.has("inference:write")) return yield* missingScope("inference:write")
          yield* concurrency.take(caller)
          const body = parseBody(yield* readBody(request, config.maxBody, config.bodyTimeout))
          if (body instanceof Refusal) return yield* body
          streamed = streamOf(body.members)
          const found = yield* routes.find(caller.orgId, body.model)
          if (Option.isNone(found)) return yield* modelNotFound(`There is no model ${body.model.slice(0, 128)}.`, "model")
          route = found.value
          const checked = checkRequest(endpoint, body, targetOf(route, caller, id, salts))
          if (checked instanceof Refusal) return yield* checked
          run(routes.use(route))
          const whole =
            checked.images.length === 0 ? checked : yield* inlineImages(fetcher, caller.orgId, route.capabilities.image_input, checked, departure.signal)
          if (route.endpoints.length === 0) return yield* modelStarting
          return { id, caller, checked: whole, route, response, departure, startedAt }
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
        const admitted = yield* Effect.tapError(check, (error) => Effect.uninterruptible(refuse(error)))
        const ended = Effect.sync(() => void run(routes.use(admitted.route)))
        yield* Effect.ensuring(inference.serve(admitted), ended)
      }, Effect.scoped)

      const answer = Effect.fnUntraced(function* (exchange: Exchange) {
        const { request, response } = exchange
        const path = pathOf(request.url)
        if (path === "/healthz" || path === "/readyz") return response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
        if (!isEndpoint(path)) return yield* notFound(`There is no route ${request.method} ${path.slice(0, 128)}.`)
        if (request.method === "OPTIONS") return response.writeHead(204, { allow }).end()
        if (request.method !== "POST") return yield* methodNotAllowed(request.method ?? "", allow)
        return yield* admit(exchange, path, yield* authenticate(request))
      })

      const handle = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
        const startedAt = performance.now()
        const dialect = dialectOf(pathOf(request.url))
        const id = yield* ids.make(RequestId)
        response.setHeader("x-request-id", id)
        response.setHeader("request-id", id)
        yield* answer({ id, request, response, startedAt }).pipe(
          Effect.catchCause((cause) => {
            const failure = cause.reasons.find(Cause.isFailReason)
            if (failure !== undefined) return Effect.sync(() => writeRefusal(response, failure.error, id, dialect))
            return Effect.logError("a request could not be handled", cause).pipe(
              Effect.annotateLogs("request_id", id),
              Effect.andThen(Effect.sync(() => writeRefusal(response, faultOf(Cause.squash(cause)), id, dialect)))
            )
          })
        )
        discardRest(request)
      })

      return Gateway.of({
        handler: (request, response) => {
          response.on("error", () => response.destroy())
          run(handle(request, response))
        }
      })
    })
  )

  static readonly layer = Layer.mergeAll(Gateway.layerHandler.pipe(Layer.provide(Inference.layer)), layerReachability, layerSweeper).pipe(
    Layer.provide([EngineClient.layer, ImageFetcher.layer]),
    Layer.provide(GatewayConfig.layer)
  )
}
