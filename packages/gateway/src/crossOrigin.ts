import type { IncomingMessage, ServerResponse } from "node:http"
import { crossOriginHeaders, isPreflight } from "@seatrial/domain"
import { pathOf } from "./pathOf.ts"

const exposed = "x-request-id, request-id, Retry-After, x-should-retry, Allow, Seatrial-Receipt-Salt"

const textOf = (value: string | ReadonlyArray<string> | undefined) => (typeof value === "string" ? value : undefined)

/** Lets pages of the named origins read answers. `methodsAt`: the methods that a path takes, null if there is no such path. Inference clients send many headers of their own, so that a preflight allows those that it asks for. */
export const makeCrossOrigin = (origins: ReadonlySet<string>, methodsAt: (path: string) => string | null) => {
  const rules = { origins, exposed, accepted: null }
  return ({ headers, method, url }: IncomingMessage, response: ServerResponse): void => {
    if (origins.size === 0) return
    const asked = {
      origin: headers.origin,
      methods: isPreflight(method, headers["access-control-request-method"]) ? methodsAt(pathOf(url)) : null,
      requestedHeaders: textOf(headers["access-control-request-headers"])
    }
    for (const [name, value] of Object.entries(crossOriginHeaders(rules, asked))) response.setHeader(name, value)
  }
}
