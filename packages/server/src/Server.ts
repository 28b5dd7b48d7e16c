import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Api, type ErrorObject, RequestIdentity } from "@seatrial/api"
import { Ids, RequestId } from "@seatrial/domain"
import { Cause, Context, Effect, type Fiber, Layer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { layerAuthorization } from "./authorization.ts"
import { layerBoundary, layerIdempotencyHeader } from "./boundary.ts"
import { Cursors } from "./Cursors.ts"
import { crossOrigin } from "./cors.ts"
import { makeDeadlines, type RunningRequest } from "./deadlines.ts"
import { layerDocuments } from "./documents.ts"
import { layerHandlers } from "./handlers.ts"
import { RateLimits } from "./RateLimits.ts"
import { ReceiptSigner } from "./ReceiptSigner.ts"
import { ServerSettings } from "./ServerSettings.ts"
import { answerMalformed, answerUnmatched, hasSemicolon, malformedRequest } from "./unmatched.ts"

/** The routes of the contract. Requires the services of the store and the hub, and `ServerSettings`. */
export const layerRoutes = Layer.mergeAll(HttpApiBuilder.layer(Api), layerDocuments).pipe(
  Layer.provide(layerHandlers),
  Layer.provide([layerAuthorization, layerBoundary, layerIdempotencyHeader]),
  Layer.provide([RateLimits.layer, Cursors.layer, ReceiptSigner.layer])
)

// Each path has one spelling. `maxParamLength` lets an ID of any length reach its handler, which returns 404.
const routerConfig = { ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, caseSensitive: true, maxParamLength: 16_384 }

const isRouteNotFound = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(
    (reason) => Cause.isFailReason(reason) && reason.error instanceof HttpServerError.HttpServerError && reason.error.reason._tag === "RouteNotFound"
  )

const failed = (request_id: RequestId, status: 500 | 503, code: string, message: string, headers: Readonly<Record<string, string>> = {}) => {
  const body: ErrorObject = { error: { message, type: "api_error", code, request_id } }
  return HttpServerResponse.jsonUnsafe(body, { status, headers })
}

/**
 * The server as one effect from a request to its response. Assigns an ID to every request and sets `x-request-id` on
 * every response, including those without a route. The app lives until its scope closes.
 */
export const makeApp = Effect.gen(function* () {
  const router = yield* HttpRouter.toHttpEffect(layerRoutes).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))
  const ids = yield* Ids
  const { corsOrigins, requestTimeout } = yield* ServerSettings
  const toOrigins = crossOrigin(corsOrigins)
  const deadlines = yield* makeDeadlines(requestTimeout)

  const answerFailure = Effect.fnUntraced(function* (
    cause: Cause.Cause<unknown>,
    { isLate }: RunningRequest,
    id: RequestId,
    request: HttpServerRequest.HttpServerRequest
  ) {
    if (isRouteNotFound(cause)) return answerUnmatched(request, id)
    if (Cause.hasInterruptsOnly(cause)) {
      return isLate ? failed(id, 503, "unavailable", "The server did not finish in time.", { "retry-after": "1" }) : yield* Effect.failCause(cause)
    }
    yield* Effect.logError(cause).pipe(Effect.annotateLogs({ request_id: id }))
    return failed(id, 500, "internal", "The server failed. Its log contains the cause under this request ID.")
  })

  return Effect.flatMap(ids.make(RequestId), (id) =>
    Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
      const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const running = deadlines.begin(fiber)
      const malformed = malformedRequest(request)
      const unrouted = hasSemicolon(request) ? Effect.succeed(answerUnmatched(request, id)) : router
      const answered = malformed === null ? unrouted : Effect.succeed(answerMalformed(id, malformed))
      const finish = (response: HttpServerResponse.HttpServerResponse) => {
        deadlines.end(running)
        return HttpServerResponse.setHeader(toOrigins(response, request), "x-request-id", id)
      }
      return Effect.matchCauseEffect(Effect.provideService(answered, RequestIdentity, id), {
        onSuccess: (response) => Effect.succeed(finish(response)),
        onFailure: (cause) => {
          deadlines.end(running)
          return Effect.map(answerFailure(cause, running, id, request), finish)
        }
      })
    })
  )
})

/**
 * The server as a request listener of a `node:http` server. Requests in flight are interrupted when the scope closes.
 */
export const makeRequestListener = Effect.gen(function* () {
  const app = yield* makeApp
  const scope = yield* Effect.scope
  const listener: (request: IncomingMessage, response: ServerResponse) => void = yield* NodeHttpServer.makeHandler(app, { scope })
  return listener
})
