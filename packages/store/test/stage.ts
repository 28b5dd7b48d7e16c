import { PgClient } from "@effect/sql-pg"
import { Ids } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { roleName } from "../src/access/applyAccess.ts"
import { connect } from "../src/Database.ts"
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

/** The server's pools on the same database, with the rights of the server's role. */
export const layerServerRole = Layer.unwrap(
  Effect.map(PgClient.PgClient, ({ config }) =>
    connect({
      url: config.url ?? Redacted.make(""),
      poolSize: 2,
      readPoolSize: 1,
      applicationName: "seatrial-test-server",
      idleTimeout: "100000 days",
      role: roleName("server"),
      tenants: true
    })
  )
)

/** Repeats until the condition holds. */
export const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* condition)) yield* Effect.yieldNow
  }).pipe(Effect.timeout("10 seconds"))
