import type { RequestListener } from "node:http"
import { isInferencePath } from "./gatewayPaths.ts"
import { inferenceMetrics } from "./observability/InferenceMetrics.ts"
import { pathOf } from "./pathOf.ts"

/** Wraps a listener so that every exchange is measured from outside. */
export const observeRequests =
  (listener: RequestListener): RequestListener =>
  (request, response) => {
    const startedAt = performance.now()
    inferenceMetrics.inFlight++
    response.once("close", () => {
      const endpoint = isInferencePath(request.url) ? pathOf(request.url) : "other"
      const status = response.writableFinished ? `${Math.floor(response.statusCode / 100)}xx` : "gone"
      const id = response.getHeader("x-request-id")
      inferenceMetrics.inFlight--
      inferenceMetrics.answered(endpoint, status, (performance.now() - startedAt) / 1_000, typeof id === "string" ? id : undefined)
    })
    listener(request, response)
  }
