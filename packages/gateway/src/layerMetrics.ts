import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer, Schema } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { inferenceMetrics } from "./observability/InferenceMetrics.ts"
import { routingMetrics } from "./observability/RoutingMetrics.ts"
import { toOpenMetrics } from "./observability/toOpenMetrics.ts"

/** Port of `/metrics`; 0 disables it. */
export const metricsPort = Config.schema(
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })),
  "GATEWAY_METRICS_PORT"
).pipe(Config.withDefault(0))

// Not the program's router, because its routes would be on the public port too.
const answer = Effect.gen(function* () {
  const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
  if (url !== "/metrics" || method !== "GET") return HttpServerResponse.text("Only GET /metrics is served.\n", { status: 404 })
  const effectMetrics = yield* PrometheusMetrics.format()
  if (headers.accept?.includes("application/openmetrics-text") === true) {
    const text = `${toOpenMetrics(effectMetrics)}${inferenceMetrics.format(true)}${routingMetrics.format(true)}# EOF\n`
    return HttpServerResponse.text(text, { contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8" })
  }
  return HttpServerResponse.text(`${effectMetrics.trimEnd()}\n${inferenceMetrics.format(false)}${routingMetrics.format(false)}`, {
    contentType: "text/plain; version=0.0.4; charset=utf-8"
  })
})

const listening = Config.all({ host: Config.NonEmptyString("GATEWAY_METRICS_HOST").pipe(Config.withDefault("0.0.0.0")), port: metricsPort })

/** Serves `/metrics` on a separate port, so that the public port never exposes it. */
export const layerMetrics = Layer.unwrap(
  Effect.map(listening, (options) =>
    options.port === 0 ? Layer.empty : HttpServer.serve(answer).pipe(Layer.provide(NodeHttpServer.layer(createServer, options)))
  )
)
