import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Deferred, Effect, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Routes } from "../src/index.ts"
import { AbsentNames } from "../src/routes/AbsentNames.ts"
import { findName, makeNameLookUps, type StoredName } from "../src/routes/nameLookUps.ts"
import { layerStore, soon } from "./stage.ts"
import { copyModel, makeCaller, makeServing } from "./support/index.ts"

const org = (number: number) => Schema.decodeSync(OrgId)(`org_0189000000000000000000000${number}`)

/**
 * Lookups with queries that complete when the test says so. `stored`: the stored state; memory has a name only if it is
 * `ready`.
 */
const makeStage = Effect.fnUntraced(function* (stored?: StoredName) {
  const absent = new AbsentNames()
  absent.clear(true)
  const open: Array<{ readonly name: string; readonly answer: Effect.Effect<unknown> }> = []
  const counts = { queries: 0, readings: 0 }
  const lookUp = yield* makeNameLookUps({
    absent,
    query: (orgId, model) =>
      Effect.flatMap(Deferred.make<StoredName | undefined>(), (done) => {
        counts.queries++
        const entry = { name: `${orgId === org(1) ? "hostile" : "honest"} ${model}`, answer: Deferred.succeed(done, stored) }
        open.push(entry)
        return Effect.ensuring(
          Deferred.await(done),
          Effect.sync(() => open.splice(open.indexOf(entry), 1))
        )
      }),
    isNews: (_, __, found) => found !== undefined,
    reload: Effect.sync(() => void counts.readings++)
  })
  const ask = (orgId: OrgId, model: string) => Effect.forkScoped(lookUp(orgId, model), { startImmediately: true })
  const settle = Effect.andThen(Effect.yieldNow, TestClock.adjust(0))
  const answerAll = Effect.gen(function* () {
    for (const { answer } of [...open]) yield* answer
    yield* settle
  })
  return { absent, answerAll, ask, counts, open, settle }
})

describe("lookups of models by name", () => {
  it.effect("cost one query for a nonexistent name until routes change, for any number of concurrent and later requests", () =>
    Effect.gen(function* () {
      const { absent, answerAll, ask, counts, settle } = yield* makeStage()
      for (let index = 0; index < 100; index++) yield* ask(org(1), "no/model")
      yield* settle
      yield* answerAll
      for (let index = 0; index < 100; index++) yield* Fiber.join(yield* ask(org(1), "no/model"))
      assert.deepStrictEqual(counts, { queries: 1, readings: 0 })
      absent.clear(true)
      yield* ask(org(1), "no/model")
      yield* settle
      assert.deepStrictEqual(counts, { queries: 2, readings: 0 })
    })
  )

  it.effect("are not cached if routes changed during the query, or if change notifications do not arrive", () =>
    Effect.gen(function* () {
      const { absent, answerAll, ask, counts, settle } = yield* makeStage()
      yield* ask(org(1), "no/model")
      yield* settle
      absent.clear(true)
      // A lookup after a change does not share a query from before it.
      yield* ask(org(1), "no/model")
      yield* settle
      assert.strictEqual(counts.queries, 2)
      yield* answerAll
      yield* Fiber.join(yield* ask(org(1), "no/model"))
      assert.strictEqual(counts.queries, 2)
      absent.clear(false)
      for (let index = 0; index < 3; index++) {
        yield* ask(org(1), "no/model")
        yield* settle
        yield* answerAll
      }
      assert.strictEqual(counts.queries, 5)
    })
  )

  it.effect("use four concurrent queries, and an organization with many names delays another by at most one query", () =>
    Effect.gen(function* () {
      const { answerAll, ask, open, settle } = yield* makeStage()
      for (let index = 0; index < 200; index++) yield* ask(org(1), `no/${index}`)
      yield* ask(org(2), "no/model")
      yield* settle
      assert.strictEqual(open.length, 4)
      yield* answerAll
      assert.strictEqual(open.length, 4)
      assert.include(
        open.map(({ name }) => name),
        "honest no/model"
      )
    })
  )

  it.effect("read all routes only if the database is newer than memory, and once if they cannot be decoded", () =>
    Effect.gen(function* () {
      const { answerAll, ask, counts, settle } = yield* makeStage({ ready: true })
      yield* ask(org(1), "odd/model")
      yield* settle
      yield* answerAll
      for (let index = 0; index < 10; index++) yield* Fiber.join(yield* ask(org(1), "odd/model"))
      assert.deepStrictEqual(counts, { queries: 1, readings: 1 })
    })
  )

  it.effect("never reach the database for names that no model can have", () =>
    Effect.gen(function* () {
      const { ask, counts } = yield* makeStage()
      for (const name of ["x".repeat(513), "a/\0"]) yield* Fiber.join(yield* ask(org(1), name))
      assert.strictEqual(counts.queries, 0)
    })
  )

  it("cache at most 128 names of each of 1,000 organizations", () => {
    const absent = new AbsentNames()
    absent.clear(true)
    absent.add(org(2), "kept", absent.generation)
    for (let index = 0; index < 1_000; index++) absent.add(org(1), `no/${index}`, absent.generation)
    const remembered = Array.from({ length: 1_000 }).filter((_, index) => absent.has(org(1), `no/${index}`))
    assert.strictEqual(remembered.length, 128)
    assert.isTrue(absent.has(org(1), "no/999"))
    assert.isTrue(absent.has(org(2), "kept"))
    for (let index = 0; index < 1_000; index++)
      absent.add(Schema.decodeSync(OrgId)(`org_0188000000000000000000${String(index).padStart(4, "0")}`), "no", absent.generation)
    assert.isFalse(absent.has(org(2), "kept"))
  })
})

layer(layerStore, { excludeTestServices: true })("with 2,001 models", (it) => {
  it.effect("a loop over names without a model or engine does not reread the routes, and a lookup uses indexes", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const { caller } = yield* makeCaller("many")
      const { modelId, revisionId } = yield* makeServing(caller, "k")
      yield* copyModel({ orgId: caller.orgId, modelId, revisionId }, "m", 2_000)
      yield* soon(Effect.sync(() => routes.known(caller.orgId, "many/m-2000") !== undefined))

      const plan = yield* sql<{ readonly "QUERY PLAN": string }>`EXPLAIN ${findName(sql, caller.orgId, "many/no-such-model")}`
      const steps = plan.map((line) => line["QUERY PLAN"]).join("\n")
      assert.notMatch(steps, /Seq Scan on models/)

      let readings = 0
      const watching = yield* Effect.forkScoped(Stream.runForEach(routes.changes, () => Effect.sync(() => void readings++)))
      yield* soon(Effect.sync(() => readings === 1))
      const ask = Effect.forEach(Array.from({ length: 300 }), (_, index) => routes.find(caller.orgId, `many/${index % 3 === 0 ? `no-${index}` : "no"}`), {
        concurrency: 32
      })
      assert.isTrue((yield* ask).every(Option.isNone))
      for (let index = 0; index < 50; index++) assert.isTrue(Option.isSome(yield* routes.find(caller.orgId, "many/tiny")))
      assert.strictEqual(readings, 1)
      yield* Fiber.interrupt(watching)
    }).pipe(Effect.scoped)
  )
})
