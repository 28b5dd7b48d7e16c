import { Ids, type Scope, scopes } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, HubConnections, Metering, ModelAdmin, Organizations, Requests, Runs } from "@seatrial/store"
import { makeTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { type ServerProcess, startServer } from "./ServerProcess.ts"

/** Two server processes on one database. The services of the store play the administrators and the operator. */
export class Stage extends Context.Service<
  Stage,
  {
    readonly url: Redacted.Redacted<string>
    readonly servers: readonly [ServerProcess, ServerProcess]
  }
>()("seatrial/test/contract/Stage") {
  /** `over`: settings of both servers, by name. */
  static readonly layer = (over: Readonly<Record<string, string>> = {}) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const url = yield* makeTestDatabase(inject("postgres"))
        const layerStore = Layer.mergeAll(
          Organizations.layerSql,
          ApiKeys.layerSql,
          Deployments.layerSql,
          Requests.layerSql,
          Metering.layerSql,
          ModelAdmin.layerSql,
          Runs.layerSql.pipe(Layer.provideMerge(HubConnections.layerSql))
        ).pipe(
          Layer.provideMerge([Database.layerUrl(url, { applicationName: "seatrial-test" }), Ids.layer]),
          Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") })))
        )
        const layerServers = Layer.effect(
          Stage,
          Effect.map(Effect.all([startServer(url, over), startServer(url, over)], { concurrency: 2 }), (servers) => Stage.of({ url, servers }))
        )
        return Layer.provideMerge(layerServers, layerStore)
      })
    )
}

/** An API key of an organization. */
export interface GivenKey {
  readonly id: Effect.Success<ReturnType<ApiKeys["Service"]["create"]>>["key"]["id"]
  readonly secret: string
}

let tenantCount = 0

/** A new organization with an owner. `purchase`: whether it has made a purchase and can deploy. */
export const makeTenant = Effect.fnUntraced(function* (purchase = true, prefix = "tenant") {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const slug = `${prefix}-${++tenantCount}`
  const { id: orgId } = yield* Effect.orDie(organizations.create({ slug, name: slug }))
  const { id: userId } = yield* organizations.addUser({ orgId, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  if (purchase) yield* organizations.recordPurchase({ orgId, micros: 1_000_000n })
  const withKey = (given: ReadonlyArray<Scope> = scopes, expiresAt?: number) =>
    Effect.map(
      keys.create({ orgId, userId, name: "key", scopes: given, ...(expiresAt === undefined ? {} : { expiresAt }) }),
      ({ key, secret }): GivenKey => ({ id: key.id, secret: Redacted.value(secret) })
    )
  return { orgId, userId, slug, withKey }
})
export type Tenant = Effect.Success<ReturnType<typeof makeTenant>>
