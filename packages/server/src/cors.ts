import { crossOriginHeaders, isPreflight } from "@seatrial/domain"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"

const exposed = "x-request-id, Retry-After, Location, Idempotent-Replayed, ETag, Allow, Seatrial-Signature"
const accepted = "Authorization, Content-Type, Idempotency-Key, If-None-Match"

/**
 * Adds CORS headers for the exact origins of the settings, without browser credentials. Adds none if the settings list
 * no origin.
 */
export const crossOrigin = (origins: ReadonlySet<string>) => {
  if (origins.size === 0) return (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => response
  const rules = { origins, exposed, accepted }
  return (response: HttpServerResponse.HttpServerResponse, { headers, method }: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
    const { allow, vary } = response.headers
    const methods = isPreflight(method, headers["access-control-request-method"]) ? (allow ?? null) : null
    const own = crossOriginHeaders(rules, { origin: headers.origin, methods, requestedHeaders: headers["access-control-request-headers"] })
    return HttpServerResponse.setHeaders(response, vary === undefined ? own : { ...own, vary: `${vary}, Origin` })
  }
}
