import { NodeRuntime } from "@effect/platform-node"
import { Ids } from "@seatrial/domain"
import { Gateway, listen } from "@seatrial/gateway"
import { Allowances, ApiKeys, Catalog, Database, Metering, Routes } from "@seatrial/store"
import { Config, Effect, Exit, Layer } from "effect"

// The gateway without records, to measure their cost: nothing is written, and nothing waits.

const layerUnmetered = Layer.succeed(
  Metering,
  Metering.of({
    enter: (_, settled) => settled(Exit.void),
    end: () => Effect.void,
    refuse: () => Effect.void,
    checkpoint: () => Effect.void,
    sweep: Effect.succeed(0)
  })
)

Layer.effectDiscard(
  Effect.gen(function* () {
    const { handler } = yield* Gateway
    yield* listen(handler, { host: "127.0.0.1", port: yield* Config.Int("GATEWAY_PORT"), grace: 2_000 })
  })
).pipe(
  Layer.provide(Gateway.layer),
  Layer.provide([Allowances.layerSql, ApiKeys.layerSql, Catalog.layerSql, layerUnmetered, Routes.layerSql]),
  Layer.provide([Database.layer, Ids.layer]),
  Layer.launch,
  NodeRuntime.runMain
)
