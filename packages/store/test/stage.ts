import { PgClient } from "@effect/sql-pg"
import { Ids } from "@seatrial/domain"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { roleName } from "../src/access/applyAccess.ts"
import type { Role } from "../src/access/tables.ts"
import { connect } from "../src/Database.ts"
import { ApiKeys, Deployments, HostClasses, HubConnections, Metering, Organizations, Requests, Routes, Runs } from "../src/index.ts"
import { layerTestDatabase } from "./support/index.ts"

/** A separate database for the suite, and IDs. */
export const layerDatabase = Layer.mergeAll(Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer)

export const encryptionKey = Buffer.alloc(32, 7).toString("base64")

const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey }))

export const layerApi = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge(layerDatabase))

/** The pools of that database with the privileges of a program. */
export const layerRole = (role: Role) =>
  Layer.unwrap(
    Effect.map(PgClient.PgClient, ({ config }) =>
      connect({
        url: config.url ?? Redacted.make(""),
        poolSize: 10,
        readPoolSize: 2,
        applicationName: `seatrial-test-${role}`,
        idleTimeout: "100000 days",
        role: roleName(role),
        tenants: role === "server"
      })
    )
  ).pipe(Layer.tap((context) => Context.get(context, PgClient.PgClient)`SELECT 1`))

// With the programs' privileges, so that each suite shows that they are sufficient.
const layerOperator = Layer.provide(layerRole("operator"))
const layerGateway = Layer.provide(layerRole("gateway"))

export const layerStore = Layer.mergeAll(
  layerOperator(Runs.layerSql),
  layerOperator(HostClasses.layerSql),
  layerGateway(Routes.layerSql),
  layerGateway(Metering.layerSql),
  Requests.layerSql
).pipe(Layer.provideMerge(HubConnections.layerSql), Layer.provideMerge(layerApi), Layer.provide(layerSettings))

/** Lets three milliseconds pass, also under a TestClock. A loop without a pause would keep the database busy. */
export const pause = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), 3))

/** Repeats until the condition holds. */
export const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* condition)) yield* pause
  }).pipe(Effect.timeout("10 seconds"))
