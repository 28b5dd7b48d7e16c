import type { Server } from "node:http"
import { Effect } from "effect"
import { serverMetrics } from "./metrics.ts"
import { routeOf } from "./unmatched.ts"

/** Methods with their own label value. All others are counted as `other`. */
const methods = new Set(["GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])

/** Records metrics of every request of the server. */
export const observeRequests = (server: Server): void => {
  server.on("request", (request, response) => {
    const startedAt = performance.now()
    const observe = () => {
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
    // A pipelined response has no socket until its turn. If the caller leaves before that, it never emits `close`, so
    // observe it only from its turn on.
    if (response.socket === null) response.once("socket", observe)
    else observe()
  })
}
