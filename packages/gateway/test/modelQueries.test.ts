import { assert, it } from "@effect/vitest"
import { type Scope as ApiScope, Ids, KeyId, OrgId, UserId } from "@seatrial/domain"
import { Catalog } from "@seatrial/store"
import { ConfigProvider, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { GatewayConfig } from "../src/GatewayConfig.ts"
import { makeOtherPaths } from "../src/otherPaths.ts"

const makeCaller = Effect.gen(function* () {
  const ids = yield* Ids
  const scopes = new Set<ApiScope>(["models:read"])
  const orgId = yield* ids.make(OrgId)
  return { keyId: yield* ids.make(KeyId), orgId, orgSlug: "acme", userId: yield* ids.make(UserId), scopes, firstPurchase: true, spendLimited: false }
}).pipe(Effect.provide(Ids.layer))

it.effect("model queries of one organization use at most two database connections, and those of another do not wait for them", () =>
  Effect.gen(function* () {
    const [greedy, other] = [yield* makeCaller, yield* makeCaller]
    const answered = yield* Deferred.make<void>()
    const asked: Array<string> = []
    const catalog = Layer.mock(Catalog)({
      ownedBy: (orgId) => {
        asked.push(orgId)
        return orgId === greedy.orgId ? Effect.as(Deferred.await(answered), []) : Effect.succeed([])
      },
      find: (orgId) => {
        asked.push(orgId)
        return Effect.andThen(Deferred.await(answered), Effect.succeedNone)
      }
    })
    const settings = Layer.provide(GatewayConfig.layer, ConfigProvider.layer(ConfigProvider.fromUnknown({})))
    const otherPath = yield* Effect.provide(makeOtherPaths, Layer.merge(catalog, settings))
    const queries = yield* Effect.forEach(["/v1/models", "/v1/models/a", "/v1/models", "/v1/models/b"], (path) =>
      Effect.forkChild(Effect.exit(otherPath(greedy, path)), { startImmediately: true })
    )
    assert.strictEqual(yield* otherPath(other, "/v1/models"), '{"object":"list","data":[]}')
    assert.deepStrictEqual(asked, [greedy.orgId, greedy.orgId, other.orgId])
    yield* Deferred.succeed(answered, undefined)
    const exits = yield* Effect.forEach(queries, Fiber.join)
    assert.deepStrictEqual(
      exits.map(({ _tag }) => _tag),
      ["Success", "Failure", "Success", "Failure"]
    )
    assert.lengthOf(asked, 5)
  })
)

it.effect("the number and the load of a model's engines are read with models:read, unless a model has that name", () =>
  Effect.gen(function* () {
    const caller = yield* makeCaller
    const queried: Array<string> = []
    const load = { running: 3, waiting: 1, capacity: null, desired: 2, ready: 1, engines: [] }
    const status = { granted: 2, ready: 1, limit: "no_gpus" as const }
    const catalog = Layer.mock(Catalog)({
      find: () => Effect.succeedNone,
      load: () => Effect.succeed(Option.some(load)),
      scaling: (_, name) => {
        queried.push(name)
        return Effect.succeed(name === "acme/tiny" ? Option.some({ replicas: 2, status }) : Option.none())
      }
    })
    const settings = Layer.provide(GatewayConfig.layer, ConfigProvider.layer(ConfigProvider.fromUnknown({})))
    const otherPath = yield* Effect.provide(makeOtherPaths, Layer.merge(catalog, settings))
    assert.strictEqual(yield* otherPath(caller, "/v1/models/acme%2Ftiny/scaling"), JSON.stringify({ replicas: 2, status }))
    assert.strictEqual(yield* otherPath(caller, "/v1/models/acme%2Ftiny/load"), JSON.stringify(load))
    const writer = { ...caller, scopes: new Set<ApiScope>(["inference:write"]) }
    const refused = [
      [caller, "/v1/models/other/scaling", "model_not_found"],
      [caller, "/v1/models/a/b/scaling", "model_not_found"],
      [caller, "/v1/models/%/scaling", "model_not_found"],
      [writer, "/v1/models/tiny/scaling", "missing_scope"],
      [writer, "/v1/models/tiny/load", "missing_scope"]
    ] as const
    for (const [who, path, code] of refused) assert.strictEqual((yield* Effect.flip(otherPath(who, path))).code, code, path)
    assert.deepStrictEqual(queried, ["acme/tiny", "other"])
  })
)
