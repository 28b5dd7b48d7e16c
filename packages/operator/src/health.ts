import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { DatabaseSchema } from "@seatrial/store"
import { Config, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

const ok = Effect.succeed(HttpServerResponse.text("ok\n"))

const readiness = Effect.map(DatabaseSchema, ({ problem }) =>
  Effect.sync(() => {
    const message = problem()
    return message === null ? HttpServerResponse.text("ok\n") : HttpServerResponse.text(`${message}\n`, { status: 503 })
  })
)

const routes = Layer.mergeAll(
  HttpRouter.add("GET", "/healthz", ok),
  Layer.unwrap(Effect.map(readiness, (answer) => HttpRouter.add("GET", "/readyz", answer))),
  PrometheusMetrics.layerHttp({ path: "/metrics" })
)

const listening = Config.all({
  host: Config.NonEmptyString("OPERATOR_HOST").pipe(Config.withDefault("0.0.0.0")),
  port: Config.Int("OPERATOR_PORT").pipe(Config.withDefault(9090))
})

/**
 * `/healthz`, `/readyz` and `/metrics` on `OPERATOR_HOST` and `OPERATOR_PORT`; disabled if the port is 0. A standby
 * operator is healthy and ready too.
 */
export const layerHealth = Layer.unwrap(
  Effect.map(listening, (options) =>
    options.port === 0 ? Layer.empty : HttpRouter.serve(routes, { disableLogger: true }).pipe(Layer.provide(NodeHttpServer.layer(createServer, options)))
  )
)
