import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ids, layerLog, layerTracing, reportStartProblem } from "@seatrial/domain"
import { Allowances, ApiKeys, Catalog, Database, layerProbe, Metering, Routes } from "@seatrial/store"
import { Effect, Layer, Runtime } from "effect"
import { Gateway } from "./Gateway.ts"
import { layerSpool, listenSettings } from "./GatewayConfig.ts"
import { layerMetrics, metricsPort } from "./layerMetrics.ts"
import { listen } from "./listen.ts"
import { observeRequests } from "./observeRequests.ts"

const layerServer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { handler } = yield* Gateway
    const settings = yield* listenSettings
    const port = yield* listen((yield* metricsPort) === 0 ? handler : observeRequests(handler), { ...settings, linger: 1_000 })
    yield* Effect.logInfo(`gateway listens on ${settings.host}:${port}`)
  })
)

Layer.mergeAll(layerServer, layerProbe).pipe(
  Layer.provide(Gateway.layer),
  Layer.provide([Allowances.layerSql, ApiKeys.layerSql, Catalog.layerSql, Layer.provide(Metering.layerSql, layerSpool), Routes.layerSql]),
  Layer.provide([Database.layerMigrated, Ids.layer]),
  Layer.provide([layerMetrics, layerTracing("seatrial-gateway")]),
  Layer.provide(layerLog),
  Layer.launch,
  reportStartProblem("seatrial gateway"),
  // A stop signal (exit code 130) is a normal exit.
  NodeRuntime.runMain({ teardown: (exit, onExit) => Runtime.defaultTeardown(exit, (code) => onExit(code === 130 ? 0 : code)) })
)
