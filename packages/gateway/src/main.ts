import { NodeRuntime } from "@effect/platform-node"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Metering, Routes } from "@seatrial/store"
import { Config, Effect, Layer, Logger } from "effect"
import { Gateway } from "./Gateway.ts"
import { listen } from "./listen.ts"

const layerServer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { handler } = yield* Gateway
    const settings = yield* Config.all({
      host: Config.String("GATEWAY_HOST").pipe(Config.withDefault("0.0.0.0")),
      port: Config.Port("GATEWAY_PORT").pipe(Config.withDefault(8081)),
      grace: Config.Number("GATEWAY_GRACE_SECONDS").pipe(Config.withDefault(30))
    })
    const port = yield* listen(handler, { host: settings.host, port: settings.port, grace: settings.grace * 1_000 })
    yield* Effect.logInfo(`gateway listens on ${settings.host}:${port}`)
  })
)

layerServer.pipe(
  Layer.provide(Gateway.layer),
  Layer.provide([ApiKeys.layerSql, Metering.layerSql, Routes.layerSql]),
  Layer.provide([Database.layerMigrated, Ids.layer]),
  Layer.provide(Logger.layer([Logger.consoleJson])),
  Layer.launch,
  NodeRuntime.runMain
)
