import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { Clock, Effect, Layer, Option, type Redacted } from "effect"
import { ApiKeys, Members, Organizations } from "../src/index.ts"
import { layerApi, soon } from "./stage.ts"
import { makeCaller } from "./support/index.ts"

/** Another process on the same database. */
const otherProcess = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  if (sql.config.url === undefined) return yield* Effect.die("no address")
  const context = yield* Layer.build(ApiKeys.layerSql.pipe(Layer.provide([PgClient.layer({ url: sql.config.url, maxConnections: 2 }), Ids.layer]), Layer.fresh))
  return yield* Effect.provide(ApiKeys, context)
})

const authenticated = Effect.fnUntraced(function* (keys: ApiKeys["Service"], secret: Redacted.Redacted<string>) {
  return Option.getOrThrow(yield* keys.authenticate(secret))
})

/** Watches a caller, and counts how often the end of its key was reported. */
const watched = (keys: ApiKeys["Service"], caller: Parameters<ApiKeys["Service"]["watch"]>[0]) => {
  const watchState = { ends: 0, unwatch: () => {} }
  watchState.unwatch = keys.watch(caller, () => {
    watchState.ends++
  })
  return watchState
}

const layerMembers = Members.layerSql.pipe(Layer.provideMerge(layerApi))

describe("a caller with requests in progress", () => {
  const ends: ReadonlyArray<
    readonly [
      string,
      (ends: { readonly caller: Effect.Success<ReturnType<typeof authenticated>> }) => Effect.Effect<unknown, unknown, ApiKeys | Organizations | Members>
    ]
  > = [
    ["the key is revoked", ({ caller }) => Effect.flatMap(ApiKeys, (keys) => keys.revoke(caller.orgId, caller.keyId))],
    ["the organization is suspended", ({ caller }) => Effect.flatMap(Organizations, (organizations) => organizations.setStatus(caller.orgId, "suspended"))],
    ["the key's user is removed", ({ caller }) => Effect.flatMap(Members, (members) => members.remove(caller.orgId, caller.userId))],
    ["the secret is replaced without an overlap", ({ caller }) => Effect.flatMap(ApiKeys, (keys) => keys.rotate(caller.orgId, caller.keyId, 0))]
  ]
  for (const [what, end] of ends) {
    it.live(`is ended in every process when ${what}, and no other caller is`, () =>
      Effect.gen(function* () {
        const organizations = yield* Organizations
        const processes = [yield* ApiKeys, yield* otherProcess]
        const { caller, secret, user } = yield* makeCaller("acme")
        // An organization must keep one owner.
        yield* organizations.addUser({ orgId: caller.orgId, email: "other@acme.example", name: "Other", role: "owner" })
        const other = yield* makeCaller("other")
        const watches = yield* Effect.forEach(processes, (keys) =>
          Effect.map(authenticated(keys, secret), (watchState) => [watched(keys, watchState), watched(keys, watchState)])
        )
        const otherCallers = yield* Effect.forEach(processes, (keys) =>
          Effect.map(authenticated(keys, other.secret), (watchState) => watched(keys, watchState))
        )
        yield* end({ caller: { ...caller, userId: user.id } })
        yield* soon(Effect.sync(() => watches.flat().every((one) => one.ends === 1)))
        assert.isTrue(otherCallers.every((one) => one.ends === 0))
      }).pipe(Effect.provide(layerMembers))
    )
  }

  it.live("is ended at the key's expiry, even if a rotation with an overlap set it", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { caller, secret } = yield* makeCaller("acme")
      const now = yield* Clock.currentTimeMillis
      const brief = yield* keys.create({ orgId: caller.orgId, userId: caller.userId, name: "brief", scopes: ["models:read"], expiresAt: now + 1_500 })
      const expiring = watched(keys, yield* authenticated(keys, brief.secret))
      const rotated = watched(keys, yield* authenticated(keys, secret))
      yield* keys.rotate(caller.orgId, caller.keyId, 1_500)
      yield* soon(Effect.sync(() => expiring.ends === 1 && rotated.ends === 1))
      assert.isAtLeast((yield* Clock.currentTimeMillis) - now, 1_500)
    }).pipe(Effect.provide(layerApi))
  )

  it.live("is not ended while the secret is valid, or after the request has ended", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const organizations = yield* Organizations
      const { caller, secret } = yield* makeCaller("acme")
      const watchState = yield* authenticated(keys, secret)
      const stays = watched(keys, watchState)
      const over = watched(keys, watchState)
      yield* organizations.recordPurchase({ orgId: caller.orgId, micros: 1n })
      over.unwatch()
      yield* keys.revoke(caller.orgId, caller.keyId)
      yield* soon(Effect.sync(() => stays.ends === 1))
      assert.strictEqual(over.ends, 0)
    }).pipe(Effect.provide(layerApi))
  )

  it.live("is ended if the key was revoked before the watch began", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { caller, secret } = yield* makeCaller("acme")
      const watchState = yield* authenticated(keys, secret)
      yield* keys.revoke(caller.orgId, caller.keyId)
      const late = watched(keys, watchState)
      yield* soon(Effect.sync(() => late.ends === 1))
    }).pipe(Effect.provide(layerApi))
  )

  it.live("is ended if the revocation happened while notifications were lost", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const keys = yield* ApiKeys
      const { caller, secret } = yield* makeCaller("acme")
      const one = watched(keys, yield* authenticated(keys, secret))
      // No notification, as if it was lost with the connection.
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE org_id = ${caller.orgId}`
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%api_keys%'`
      yield* soon(Effect.sync(() => one.ends === 1))
    }).pipe(Effect.provide(layerApi))
  )
})
