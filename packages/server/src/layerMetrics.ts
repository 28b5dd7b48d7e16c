import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer, Schema } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

/** Port of `/metrics`. 0 disables it. */
export const metricsPort = Config.schema(
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })),
  "SERVER_METRICS_PORT"
).pipe(Config.withDefault(0))

// Do not use HttpRouter here: the program has only one, so the route would also be on the public port.
const answer = Effect.gen(function* () {
  const { method, url } = yield* HttpServerRequest.HttpServerRequest
  if (url !== "/metrics" || method !== "GET") return HttpServerResponse.text("Not found. This port serves only GET /metrics.\n", { status: 404 })
  return HttpServerResponse.text(yield* PrometheusMetrics.format(), { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

const listening = Config.all({ host: Config.NonEmptyString("SERVER_METRICS_HOST").pipe(Config.withDefault("0.0.0.0")), port: metricsPort })

/** Serves `/metrics` on a separate port, so that the public port never exposes it. */
export const layerMetrics = Layer.unwrap(
  Effect.map(listening, (options) =>
    options.port === 0 ? Layer.empty : HttpServer.serve(answer).pipe(Layer.provide(NodeHttpServer.layer(createServer, options)))
  )
)
