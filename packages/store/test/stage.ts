import { Ids } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer } from "effect"
import { inject } from "vitest"
import { ApiKeys, Deployments, HostClasses, HubConnections, Metering, Organizations, Requests, Routes, Runs } from "../src/index.ts"
import { layerTestDatabase } from "../src/testing.ts"

/** A database of the suite's own, and ids. */
export const layerDatabase = Layer.mergeAll(Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer)

export const encryptionKey = Buffer.alloc(32, 7).toString("base64")

const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey }))

export const layerApi = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge(layerDatabase))

export const layerStore = Layer.mergeAll(Runs.layerSql, Routes.layerSql, Requests.layerSql, Metering.layerSql, HostClasses.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(layerApi),
  Layer.provide(layerSettings)
)

/** Repeats until the condition holds. */
export const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* condition)) yield* Effect.yieldNow
  }).pipe(Effect.timeout("10 seconds"))
