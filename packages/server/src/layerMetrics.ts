import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer, Schema } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

/** Port of `/metrics`; 0: none. */
export const metricsPort = Config.schema(
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })),
  "SERVER_METRICS_PORT"
).pipe(Config.withDefault(0))

// No router: that is one for the whole program, and what is added to it here would be on the public port too.
const answer = Effect.gen(function* () {
  const { method, url } = yield* HttpServerRequest.HttpServerRequest
  if (url !== "/metrics" || method !== "GET") return HttpServerResponse.text("There is only GET /metrics.\n", { status: 404 })
  return HttpServerResponse.text(yield* PrometheusMetrics.format(), { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

const listening = Config.all({ host: Config.NonEmptyString("SERVER_METRICS_HOST").pipe(Config.withDefault("0.0.0.0")), port: metricsPort })

/** `/metrics` on a port of its own, so that the public one never shows it. */
export const layerMetrics = Layer.unwrap(
  Effect.map(listening, (options) =>
    options.port === 0 ? Layer.empty : HttpServer.serve(answer).pipe(Layer.provide(NodeHttpServer.layer(createServer, options)))
  )
)
