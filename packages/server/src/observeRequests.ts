import type { Server } from "node:http"
import { Effect } from "effect"
import { serverMetrics } from "./metrics.ts"
import { routeOf } from "./unmatched.ts"

/** Methods that a route may have; any other is told as `other`. */
const methods = new Set(["GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])

/** Measures every exchange of the server, from outside of its answers. */
export const observeRequests = (server: Server): void => {
  server.on("request", (request, response) => {
    const startedAt = performance.now()
    const answering = () => {
      Effect.runSync(serverMetrics.inFlight.modify({}, 1))
      response.once("close", () => {
        const route = routeOf(request.url ?? "")
        const method = methods.has(request.method ?? "") ? String(request.method) : "other"
        const status = response.headersSent ? `${Math.floor(response.statusCode / 100)}xx` : "gone"
        const limited = response.statusCode === 429 ? serverMetrics.rateLimited.update({ route }, 1) : Effect.void
        const seconds = (performance.now() - startedAt) / 1_000
        Effect.runSync(Effect.all([serverMetrics.inFlight.modify({}, -1), serverMetrics.requestSeconds.update({ route, method, status }, seconds), limited]))
      })
    }
    // An answer behind another one on its connection has none yet, and never hears of its end where the caller leaves before its turn.
    if (response.socket === null) response.once("socket", answering)
    else answering()
  })
}
