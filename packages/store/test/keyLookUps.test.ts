import { createHash } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Ids, makeApiKey } from "@seatrial/domain"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Redacted, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { KeyFingerprints } from "../src/apiKeys/KeyFingerprints.ts"
import { makeKeyLookUps } from "../src/apiKeys/keyLookUps.ts"
import { ApiKeys, KeyLookUpRefused } from "../src/index.ts"
import { KeyCache } from "../src/KeyCache.ts"
import { layerApi } from "./stage.ts"
import { makeCaller } from "./support/index.ts"

const sha256 = (name: string): string => createHash("sha256").update(name).digest("hex")

/** Queries that complete when the test says so. */
const makeStage = Effect.gen(function* () {
  const cache = new KeyCache(100)
  const fingerprints = new KeyFingerprints(100)
  const open: Array<{ readonly sha256: string; readonly answer: Effect.Effect<unknown> }> = []
  const lookUp = yield* makeKeyLookUps(cache, fingerprints, (sha256) =>
    Effect.flatMap(Deferred.make<undefined>(), (done) => {
      const entry = { sha256, answer: Deferred.succeed(done, undefined) }
      open.push(entry)
      return Effect.ensuring(
        Deferred.await(done),
        Effect.sync(() => open.splice(open.indexOf(entry), 1))
      )
    })
  )
  const ask = (name: string, address: string) =>
    Effect.forkScoped(
      lookUp(sha256(name), 0, () => address),
      { startImmediately: true }
    )
  /** Lets all ready fibers run. */
  const settle = Effect.andThen(Effect.yieldNow, TestClock.adjust(0))
  return { ask, cache, fingerprints, lookUp, open, settle }
})

const isOpen = ({ open }: Effect.Success<typeof makeStage>) => open.map((entry) => entry.sha256)

describe("lookups of keys", () => {
  it.effect("that may not exist use two concurrent queries, and addresses take turns", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      for (let index = 0; index < 20; index++) yield* stage.ask(`flood ${index}`, "flooding")
      yield* stage.ask("honest", "honest")
      yield* stage.settle
      assert.deepStrictEqual(isOpen(stage), [sha256("flood 0"), sha256("flood 1")])
      for (const { answer } of [...stage.open]) yield* answer
      yield* stage.settle
      assert.deepStrictEqual(isOpen(stage).sort(), [sha256("flood 2"), sha256("honest")].sort())
    })
  )

  it.effect("that exist are not delayed by guesses from the same address", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      stage.fingerprints.add(sha256("real"))
      for (let index = 0; index < 40; index++) yield* stage.ask(`flood ${index}`, "shared")
      yield* stage.ask("real", "shared")
      yield* stage.settle
      assert.deepStrictEqual(isOpen(stage), [sha256("flood 0"), sha256("flood 1"), sha256("real")])
    })
  )

  it.effect("are refused to an address that sent 30 nonexistent keys, with a retry time, and to no other address", () =>
    Effect.gen(function* () {
      const { lookUp, open } = yield* makeStage
      const fail = Effect.fnUntraced(function* (name: string, address: string, now: number) {
        const fiber = yield* Effect.forkScoped(
          lookUp(sha256(name), now, () => address),
          { startImmediately: true }
        )
        while (open.length === 0 && fiber.pollUnsafe() === undefined) yield* Effect.yieldNow
        for (const { answer } of [...open]) yield* answer
        return yield* Fiber.await(fiber)
      })
      for (let index = 0; index < 30; index++) assert.isTrue(Exit.isSuccess(yield* fail(`guess ${index}`, "flooding", 0)))
      assert.deepStrictEqual(yield* fail("guess 30", "flooding", 0), Exit.fail(new KeyLookUpRefused({ retryAfter: 1 })))
      assert.isTrue(Exit.isSuccess(yield* fail("guess 31", "elsewhere", 0)))
      assert.isTrue(Exit.isSuccess(yield* fail("guess 32", "flooding", 1_000)))
    })
  )

  it.effect("of the same key share a query unless it began before a change", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      stage.fingerprints.add(sha256("real"))
      const first = yield* stage.ask("real", "a")
      const second = yield* stage.ask("real", "b")
      yield* stage.settle
      assert.strictEqual(stage.open.length, 1)
      stage.cache.forget("key_1")
      yield* stage.ask("real", "c")
      yield* stage.settle
      assert.strictEqual(stage.open.length, 2)
      // The first caller may be interrupted.
      yield* Fiber.interrupt(first)
      yield* stage.open[0]?.answer ?? Effect.void
      assert.isUndefined(yield* Fiber.join(second))
    })
  )
})

/** A second process on the same database. */
const otherProcess = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  if (sql.config.url === undefined) return yield* Effect.die("no address")
  return ApiKeys.layerSql.pipe(Layer.provide([PgClient.layer({ url: sql.config.url, maxConnections: 2 }), Ids.layer]), Layer.fresh)
})

const guess = () => makeApiKey(crypto.getRandomValues(new Uint8Array(128)))

/** Identifies a token from a shared address. */
const identify = (token: string) =>
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const known = keys.identify(token, () => "shared")
    const result = Effect.isEffect(known) ? yield* known : known
    return Option.isSome(result) ? "caller" : "unknown"
  }).pipe(Effect.catchTag("KeyLookUpRefused", () => Effect.succeed("refused")))

describe("an address that guesses keys", () => {
  it.live("does not lock out existing keys: not after a restart, and not new or rotated keys", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { caller, organization, secret, user } = yield* makeCaller("acme")
      yield* Effect.gen(function* () {
        const answers = yield* Effect.forEach(Array.from({ length: 60 }, guess), identify, { concurrency: "unbounded" })
        assert.strictEqual(answers.filter((answer) => answer === "unknown").length, 30)
        assert.strictEqual(answers.filter((answer) => answer === "refused").length, 30)
        assert.strictEqual(yield* identify(Redacted.value(secret)), "caller")
        const once = identify(guess())
        assert.strictEqual(yield* once, "refused")
        const { secret: fresh } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "new", scopes: [] })
        const isCaller = (token: Redacted.Redacted<string>) =>
          identify(Redacted.value(token)).pipe(
            Effect.repeat({ until: (answer) => answer === "caller", schedule: Schedule.spaced("5 millis") }),
            Effect.timeout("10 seconds")
          )
        yield* isCaller(fresh)
        const rotated = Option.getOrThrow(yield* keys.rotate(caller.orgId, caller.keyId, 0))
        yield* isCaller(rotated.secret)
      }).pipe(Effect.provide(yield* otherProcess))
    }).pipe(Effect.provide(layerApi))
  )
})
