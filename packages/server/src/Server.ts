import type { IncomingMessage, ServerResponse } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Api, type ErrorObject, RequestIdentity } from "@seatrial/api"
import { Ids, RequestId } from "@seatrial/domain"
import { Cause, Effect, Layer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { layerAuthorization } from "./authorization.ts"
import { layerBoundary, layerIdempotencyHeader } from "./boundary.ts"
import { Cursors } from "./Cursors.ts"
import { crossOrigin } from "./cors.ts"
import { layerDocuments } from "./documents.ts"
import { layerHandlers } from "./handlers.ts"
import { RateLimits } from "./RateLimits.ts"
import { ServerSettings } from "./ServerSettings.ts"
import { answerHostless, answerUnmatched } from "./unmatched.ts"

/** The routes of the contract; they need the store's and the hub's services and `ServerSettings`. */
export const layerRoutes = Layer.mergeAll(HttpApiBuilder.layer(Api), layerDocuments).pipe(
  Layer.provide(layerHandlers),
  Layer.provide([layerAuthorization, layerBoundary, layerIdempotencyHeader]),
  Layer.provide([RateLimits.layer, Cursors.layer])
)

// Each path has one spelling, and an id of any length reaches its handler, which knows that there is no such record.
const routerConfig = { ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, caseSensitive: true, maxParamLength: 16_384 }

const isRouteNotFound = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(
    (reason) => Cause.isFailReason(reason) && reason.error instanceof HttpServerError.HttpServerError && reason.error.reason._tag === "RouteNotFound"
  )

const isHttp11 = ({ source }: HttpServerRequest.HttpServerRequest): boolean => "httpVersion" in source && source.httpVersion === "1.1"

const internalError = (request_id: RequestId) => {
  const body: ErrorObject = {
    error: { message: "The server failed. Its log names the cause under this request id.", type: "api_error", code: "internal", request_id }
  }
  return HttpServerResponse.jsonUnsafe(body, { status: 500 })
}

/**
 * The server as one effect from a request to its answer: gives every exchange its id and every answer `x-request-id`, also where there is no route. Lives as long
 * as the scope that it was made in.
 */
export const makeApp = Effect.gen(function* () {
  const router = yield* HttpRouter.toHttpEffect(layerRoutes).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))
  const ids = yield* Ids
  const { corsOrigins } = yield* ServerSettings
  const toOrigins = crossOrigin(corsOrigins)

  return Effect.gen(function* () {
    const id = yield* ids.make(RequestId)
    const request = yield* HttpServerRequest.HttpServerRequest
    const answered = request.headers.host === undefined && isHttp11(request) ? Effect.succeed(answerHostless(id)) : router
    const response = yield* answered.pipe(
      Effect.provideService(RequestIdentity, id),
      Effect.catchCause(
        Effect.fnUntraced(function* (cause) {
          if (isRouteNotFound(cause)) return answerUnmatched(request, id)
          if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
          yield* Effect.logError(cause).pipe(Effect.annotateLogs({ request_id: id }))
          return internalError(id)
        })
      )
    )
    return HttpServerResponse.setHeader(toOrigins(response, request), "x-request-id", id)
  })
})

/** The server as a listener for a `node:http` server that serves other programs too. Requests in flight are interrupted when the scope closes. */
export const makeRequestListener = Effect.gen(function* () {
  const app = yield* makeApp
  const scope = yield* Effect.scope
  const listener: (request: IncomingMessage, response: ServerResponse) => void = yield* NodeHttpServer.makeHandler(app, { scope })
  return listener
})
