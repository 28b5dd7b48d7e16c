import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Ids, isApiKey, KeyId, makeApiKey, OrgId, UserId } from "@seatrial/domain"
import { Effect, Layer, Option, Redacted, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { inject } from "vitest"
import { ApiKeys, Billing, type Caller, Members, Organizations } from "../src/index.ts"
import { KeyCache } from "../src/KeyCache.ts"
import { layerApi, pause } from "./stage.ts"
import { makeCaller, makeTestDatabase } from "./support/index.ts"

/** A second process on the same database. */
const otherProcess = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  if (sql.config.url === undefined) return yield* Effect.die("no address")
  return ApiKeys.layerSql.pipe(Layer.provide([PgClient.layer({ url: sql.config.url, maxConnections: 2 }), Ids.layer]), Layer.fresh)
})

const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  condition.pipe(Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("10 millis") }), Effect.timeout("10 seconds"))

describe("ApiKeys", () => {
  it.live("a key is returned once, stored as its SHA-256 only, and identifies its creator", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const keys = yield* ApiKeys
      const { caller, organization, secret, user } = yield* makeCaller("acme")
      const text = Redacted.value(secret)
      assert.isTrue(isApiKey(text))
      assert.deepStrictEqual([caller.orgId, caller.orgSlug, caller.userId, caller.firstPurchase], [organization.id, "acme", user.id, true])
      assert.isTrue(caller.scopes.has("deployments:write"))
      const [row] = yield* keys.list(organization.id)
      assert.deepStrictEqual([row?.prefix, row?.lastFour], [text.slice(0, 13), text.slice(-4)])
      const dump = JSON.stringify(yield* sql`SELECT k.*, encode(secret_sha256, 'escape') FROM api_keys k WHERE org_id = ${organization.id}`, (_, value) =>
        typeof value === "bigint" ? `${value}` : value
      )
      assert.notInclude(dump, text.slice(13, 40))
      assert.notInclude(JSON.stringify(yield* sql`SELECT after FROM audit_events WHERE org_id = ${organization.id}`), text.slice(13, 40))
      assert.isTrue(Option.isNone(yield* keys.authenticate(Redacted.make(makeApiKey(crypto.getRandomValues(new Uint8Array(128)))))))
      assert.isTrue(Option.isNone(yield* keys.authenticate(Redacted.make(""))))
    }).pipe(Effect.provide(layerApi))
  )

  it.live("a revocation, a suspension and a first purchase reach another process that has cached the key", () =>
    Effect.gen(function* () {
      const organizations = yield* Organizations
      const keys = yield* ApiKeys
      const organization = yield* organizations.create({ slug: "acme", name: "Acme" })
      const user = yield* organizations.addUser({ orgId: organization.id, email: "Ada@Acme.example", name: "Ada", role: "owner" })
      const { key, secret } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "k", scopes: ["models:read"] })
      yield* Effect.gen(function* () {
        const theirs = yield* ApiKeys
        const observed = theirs.authenticate(secret)
        assert.isFalse(Option.getOrThrow(yield* observed).firstPurchase)
        yield* organizations.recordPurchase({ orgId: organization.id, micros: 1n })
        yield* soon(Effect.map(observed, (caller) => Option.isSome(caller) && caller.value.firstPurchase))
        yield* organizations.setStatus(organization.id, "suspended")
        yield* soon(Effect.map(observed, Option.isNone))
        yield* organizations.setStatus(organization.id, "active")
        yield* soon(Effect.map(observed, Option.isSome))
        assert.isTrue(Option.isSome(yield* keys.revoke(organization.id, key.id)))
        assert.isTrue(Option.isNone(yield* keys.authenticate(secret)))
        yield* soon(Effect.map(observed, Option.isNone))
        assert.isTrue(Option.isNone(yield* keys.revoke(organization.id, key.id)))
      }).pipe(Effect.provide(yield* otherProcess))
    }).pipe(Effect.provide(layerApi))
  )

  it.live("a process receives revocations again after its listening connection was lost", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const keys = yield* ApiKeys
      const { caller, secret } = yield* makeCaller("lost")
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`
      const listening = sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'`
      yield* soon(Effect.map(listening, (rows) => rows.length > 0))
      assert.isTrue(Option.isSome(yield* keys.authenticate(secret)))
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE org_id = ${caller.orgId}`
      yield* sql`SELECT pg_notify('api_keys', ${caller.keyId})`
      yield* soon(Effect.map(keys.authenticate(secret), Option.isNone))
    }).pipe(Effect.provide(layerApi))
  )

  it.effect("a key expires, and its use is recorded at most once a minute", () => {
    const start = Date.UTC(2030, 0, 1)
    return Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const organizations = yield* Organizations
      const keys = yield* ApiKeys
      const organization = yield* organizations.create({ slug: "acme", name: "Acme" })
      const user = yield* organizations.addUser({ orgId: organization.id, email: "ada@acme.example", name: "Ada", role: "owner" })
      const { secret } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "k", scopes: [], expiresAt: start + 600_000 })
      const used = Effect.map(keys.list(organization.id), ([key]) => key?.lastUsedAt)
      const settled = (expected: string) =>
        Effect.gen(function* () {
          while ((yield* used) !== expected) yield* pause
        })
      yield* keys.authenticate(secret)
      yield* settled("2030-01-01T00:00:00.000Z")
      yield* TestClock.adjust("59 seconds")
      yield* keys.authenticate(secret)
      yield* TestClock.adjust("1 seconds")
      yield* keys.authenticate(secret)
      yield* settled("2030-01-01T00:01:00.000Z")
      yield* TestClock.setTime(start + 599_999)
      assert.isTrue(Option.isSome(yield* keys.authenticate(secret)))
      yield* TestClock.setTime(start + 600_000)
      assert.isTrue(Option.isNone(yield* keys.authenticate(secret)))
      const writes =
        yield* sql`SELECT count(*)::int AS count FROM api_keys WHERE org_id = ${organization.id} AND last_used_at > created_at + interval '10 minutes'`
      assert.deepStrictEqual<unknown>(writes, [{ count: 0 }])
    }).pipe(Effect.provide(layerApi), (test) => Effect.andThen(TestClock.setTime(start), test))
  })

  it.live("a rotation without overlap, a removed member and suspended billing reach another process that has cached the key", () =>
    Effect.gen(function* () {
      const organizations = yield* Organizations
      const keys = yield* ApiKeys
      const [members, billing] = [yield* Members, yield* Billing]
      const { caller, secret } = yield* makeCaller("acme")
      const user = yield* organizations.addUser({ orgId: caller.orgId, email: "bob@acme.example", name: "Bob", role: "member" })
      const bobs = yield* keys.create({ orgId: caller.orgId, userId: user.id, name: "k", scopes: [] })
      yield* Effect.gen(function* () {
        const theirs = yield* ApiKeys
        const [observed, bobSeen] = [theirs.authenticate(secret), theirs.authenticate(bobs.secret)]
        assert.isTrue(Option.isSome(yield* observed))
        assert.isTrue(Option.isSome(yield* bobSeen))
        yield* billing.setSuspended(caller.orgId, true)
        yield* soon(Effect.map(observed, (found) => Option.isSome(found) && !found.value.firstPurchase))
        yield* billing.setSuspended(caller.orgId, false)
        yield* soon(Effect.map(observed, (found) => Option.isSome(found) && found.value.firstPurchase))
        yield* members.remove(caller.orgId, user.id)
        yield* soon(Effect.map(bobSeen, Option.isNone))
        const rotated = Option.getOrThrow(yield* keys.rotate(caller.orgId, caller.keyId, 0))
        assert.isTrue(Option.isNone(yield* keys.authenticate(secret)))
        yield* soon(Effect.map(observed, Option.isNone))
        assert.deepStrictEqual(Option.getOrThrow(yield* theirs.authenticate(rotated.secret)).keyId, caller.keyId)
      }).pipe(Effect.provide(yield* otherProcess))
    }).pipe(Effect.provide(Layer.mergeAll(Members.layerSql, Billing.layerSql).pipe(Layer.provideMerge(layerApi))))
  )

  it.effect("the secret before a rotation ends at its exact millisecond, even if it is cached; a second rotation ends it immediately", () => {
    const start = Date.UTC(2030, 0, 1)
    return Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { caller, secret: first } = yield* makeCaller("acme")
      const live = (secret: Redacted.Redacted<string>) => Effect.map(keys.authenticate(secret), Option.isSome)
      const rotate = (overlap: number) => Effect.map(keys.rotate(caller.orgId, caller.keyId, overlap), Option.getOrThrow)
      const { key, secret: second } = yield* rotate(10_000)
      assert.deepStrictEqual([key.id, key.previousExpiresAt], [caller.keyId, "2030-01-01T00:00:10.000Z"])
      yield* TestClock.setTime(start + 9_999)
      // The second time from memory.
      for (let time = 0; time < 2; time++) assert.deepStrictEqual([yield* live(first), yield* live(second)], [true, true])
      yield* TestClock.setTime(start + 10_000)
      assert.deepStrictEqual([yield* live(first), yield* live(second)], [false, true])
      const { secret: third } = yield* rotate(10_000)
      assert.deepStrictEqual([yield* live(second), yield* live(third)], [true, true])
      const { secret: fourth } = yield* rotate(7 * 86_400_000)
      assert.deepStrictEqual([yield* live(first), yield* live(second), yield* live(third), yield* live(fourth)], [false, false, true, true])
      yield* keys.revoke(caller.orgId, caller.keyId)
      assert.deepStrictEqual([yield* live(third), yield* live(fourth)], [false, false])
      assert.isTrue(Option.isNone(yield* keys.rotate(caller.orgId, caller.keyId, 0)))
    }).pipe(Effect.provide(layerApi), (test) => Effect.andThen(TestClock.setTime(start), test))
  })

  it.effect("an overlap does not outlive the key, and an expired key is not rotated", () => {
    const start = Date.UTC(2030, 0, 1)
    return Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { caller } = yield* makeCaller("acme")
      const { orgId, userId } = caller
      const { key, secret } = yield* keys.create({ orgId, userId, name: "k", scopes: [], expiresAt: start + 5_000 })
      const rotated = Option.getOrThrow(yield* keys.rotate(orgId, key.id, 60_000))
      yield* TestClock.setTime(start + 4_999)
      for (const each of [secret, rotated.secret]) assert.isTrue(Option.isSome(yield* keys.authenticate(each)))
      yield* TestClock.setTime(start + 5_000)
      for (const each of [secret, rotated.secret]) assert.isTrue(Option.isNone(yield* keys.authenticate(each)))
      assert.isTrue(Option.isNone(yield* keys.rotate(orgId, key.id, 60_000)))
    }).pipe(Effect.provide(layerApi), (test) => Effect.andThen(TestClock.setTime(start), test))
  })

  it.live("keys are listed and revoked within their organization only", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const mine = yield* makeCaller("mine")
      const theirs = yield* makeCaller("theirs")
      assert.deepStrictEqual(
        (yield* keys.list(mine.caller.orgId)).map(({ id }) => id),
        [mine.caller.keyId]
      )
      assert.isTrue(Option.isNone(yield* keys.revoke(mine.caller.orgId, theirs.caller.keyId)))
      assert.isTrue(Option.isSome(yield* keys.authenticate(theirs.secret)))
    }).pipe(Effect.provide(layerApi))
  )
})

describe("KeyCache", () => {
  const body = "0000000000000000000000000"
  const key = (index: number): { readonly caller: Caller; readonly expiresAt: null; readonly usedAt: null } => ({
    caller: {
      keyId: KeyId.make(`key_${index}${body}`),
      orgId: OrgId.make(`org_0${body}`),
      orgSlug: "acme",
      userId: UserId.make(`usr_0${body}`),
      scopes: new Set(),
      firstPurchase: false,
      spendLimited: false
    },
    expiresAt: null,
    usedAt: null
  })

  it("is bounded, and guessed keys do not evict real ones", () => {
    const cache = new KeyCache(3)
    cache.setTrusted(true)
    for (let index = 0; index < 3; index++) cache.putLive(`live${index}`, key(index), 0, cache.generation)
    for (let index = 0; index < 100; index++) cache.putUnknown(`guess${index}`, 0, cache.generation)
    assert.strictEqual(cache.size, 6)
    assert.isDefined(cache.live("live0", 1))
    cache.putLive("live3", key(3), 0, cache.generation)
    assert.isUndefined(cache.live("live1", 1))
    assert.isDefined(cache.live("live0", 29_999))
    assert.isUndefined(cache.live("live0", 30_000))
  })

  it("does not cache the result of a query that began before a change", () => {
    const cache = new KeyCache(3)
    cache.setTrusted(true)
    const firstGeneration = cache.generation
    cache.forget(key(1).caller.keyId)
    cache.putLive("live1", key(1), 0, firstGeneration)
    cache.putUnknown("guess", 0, firstGeneration)
    assert.strictEqual(cache.size, 0)
  })

  it("caches nothing while change notifications do not arrive", () => {
    const cache = new KeyCache(3)
    cache.putLive("live1", key(1), 0, cache.generation)
    assert.strictEqual(cache.size, 0)
    cache.setTrusted(true)
    cache.putLive("live1", key(1), 0, cache.generation)
    cache.setTrusted(false)
    assert.strictEqual(cache.size, 0)
  })
})

it.live("a test database is dropped when its scope closes", () =>
  Effect.gen(function* () {
    const url = yield* Effect.scoped(makeTestDatabase(inject("postgres")))
    const opened = yield* Effect.exit(Effect.scoped(Layer.build(PgClient.layer({ url, minConnections: 1 }))))
    const queried = yield* Effect.exit(Effect.flatMap(PgClient.PgClient, (sql) => sql`SELECT 1`).pipe(Effect.provide(PgClient.layer({ url }))))
    assert.isTrue(opened._tag === "Failure" || queried._tag === "Failure")
  })
)
