import type { RequestListener } from "node:http"
import { Effect } from "effect"
import { isInferencePath, pathOf } from "./Gateway.ts"
import { gatewayMetrics } from "./metrics.ts"

/** The same listener, with every exchange measured from outside. */
export const observeRequests =
  (listener: RequestListener): RequestListener =>
  (request, response) => {
    const startedAt = performance.now()
    Effect.runSync(gatewayMetrics.inFlight.modify({}, 1))
    response.once("close", () => {
      const endpoint = isInferencePath(request.url) ? pathOf(request.url) : "other"
      const status = response.writableFinished ? `${Math.floor(response.statusCode / 100)}xx` : "gone"
      const seconds = (performance.now() - startedAt) / 1_000
      Effect.runSync(Effect.andThen(gatewayMetrics.inFlight.modify({}, -1), gatewayMetrics.requestSeconds.update({ endpoint, status }, seconds)))
    })
    listener(request, response)
  }
