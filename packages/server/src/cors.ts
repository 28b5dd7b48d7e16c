import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"

const exposed = "x-request-id, Retry-After, Location, Idempotent-Replayed, ETag, Allow, Seatrial-Signature"
const accepted = "Authorization, Content-Type, Idempotency-Key, If-None-Match"

/** Seconds that a browser may keep the answer to a preflight. */
const maxAge = "600"

/** What answers say to pages of the origins that the installation names: exact origins, without credentials of the browser's. Without any, nothing is said. */
export const crossOrigin = (origins: ReadonlySet<string>) => {
  if (origins.size === 0) return (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => response
  return (response: HttpServerResponse.HttpServerResponse, { headers, method }: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
    const { origin } = headers
    const { vary } = response.headers
    const varying = HttpServerResponse.setHeader(response, "vary", vary === undefined ? "Origin" : `${vary}, Origin`)
    if (origin === undefined || !origins.has(origin)) return varying
    const allow = response.headers.allow
    const preflight = method === "OPTIONS" && allow !== undefined && headers["access-control-request-method"] !== undefined
    return HttpServerResponse.setHeaders(varying, {
      "access-control-allow-origin": origin,
      ...(preflight
        ? { "access-control-allow-methods": allow, "access-control-allow-headers": accepted, "access-control-max-age": maxAge }
        : { "access-control-expose-headers": exposed })
    })
  }
}
