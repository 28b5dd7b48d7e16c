import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

/** Port of `/metrics`; 0: none. */
export const metricsPort = Config.schema(
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })),
  "SERVER_METRICS_PORT"
).pipe(Config.withDefault(0))

const listening = Config.all({ host: Config.NonEmptyString("SERVER_METRICS_HOST").pipe(Config.withDefault("0.0.0.0")), port: metricsPort })

/** `/metrics` on a port of its own, so that the public one never shows it. */
export const layerMetrics = Layer.unwrap(
  Effect.map(listening, (options) =>
    options.port === 0
      ? Layer.empty
      : HttpRouter.serve(PrometheusMetrics.layerHttp({ path: "/metrics" }), { disableLogger: true, disableListenLog: true }).pipe(
          Layer.provide(NodeHttpServer.layer(createServer, options))
        )
  )
)
