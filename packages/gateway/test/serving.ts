import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, HubConnections, Organizations, Requests, Runs } from "@seatrial/store"
import { makeCaller, makeServing, makeTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"

/** The address of the database that programs and test share. */
export class Url extends Context.Service<Url, Redacted.Redacted<string>>()("seatrial/test/Url") {
  static readonly layer = Layer.effect(
    Url,
    Effect.suspend(() => makeTestDatabase(inject("postgres")))
  )
}

const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") }))

export const layerStore = Layer.mergeAll(ApiKeys.layerSql, Deployments.layerSql, Organizations.layerSql, Requests.layerSql, Runs.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(Ids.layer),
  Layer.provideMerge(Layer.unwrap(Effect.map(Url, (url) => Database.layerUrl(url)))),
  Layer.provideMerge(Url.layer),
  Layer.provide(layerSettings)
)

/** An organization with a key, and its model `<slug>/tiny` with a verified revision at `url`. */
export const makeServed = Effect.fnUntraced(function* (slug: string, url: string) {
  const runs = yield* Runs
  const { caller, secret } = yield* makeCaller(slug)
  const { model, modelId, operation } = yield* makeServing(caller, "k")
  yield* runs.publishEndpoints(operation.id, caller.orgId, [{ url, pod: "pod-0" }])
  return { orgId: caller.orgId, keyId: caller.keyId, secret: Redacted.value(secret), model, modelId }
})
