import type { IncomingMessage, ServerResponse } from "node:http"
import { crossOriginHeaders, isPreflight } from "@seatrial/domain"
import { pathOf } from "./pathOf.ts"

const exposed = "x-request-id, request-id, Retry-After, x-should-retry, Allow, Seatrial-Receipt-Salt"

const textOf = (value: string | ReadonlyArray<string> | undefined) => (typeof value === "string" ? value : undefined)

/**
 * Sets the CORS headers for pages of the given origins. `methodsAt`: the methods of a path, or null. Inference clients
 * send many custom headers, so a preflight allows all headers that it requests.
 */
export const makeCrossOrigin = (origins: ReadonlySet<string>, methodsAt: (path: string) => string | null) => {
  const rules = { origins, exposed, accepted: null }
  return ({ headers, method, url }: IncomingMessage, response: ServerResponse): void => {
    if (origins.size === 0) return
    const exchange = {
      origin: headers.origin,
      methods: isPreflight(method, headers["access-control-request-method"]) ? methodsAt(pathOf(url)) : null,
      requestedHeaders: textOf(headers["access-control-request-headers"])
    }
    for (const [name, value] of Object.entries(crossOriginHeaders(rules, exchange))) response.setHeader(name, value)
  }
}
