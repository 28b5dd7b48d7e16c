import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { EngineState } from "../../src/routing/EngineState.ts"
import { makePool, waiting } from "./pool.ts"

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const noKey = () => null

/** A public model whose engines have `places` slots in total. */
const makePublic = (places: number, engines = 1) => {
  const model = makePool(
    Array.from({ length: engines }, (_, index) => `e${index}`),
    places / engines - 4
  )
  model.world.serve(["old"], { isPublic: true })
  model.world.serve(Array.from({ length: engines }, (_, index) => `e${index}`))
  return model.pool
}

type Pool = ReturnType<typeof makePublic>

/** Takes slots for an organization until it may take no more. Returns their engines. */
const takeAll = (pool: Pool, org: string): ReadonlyArray<EngineState> => {
  const engine = pool.take(noKey, true, org)
  return engine === undefined ? [] : [engine, ...takeAll(pool, org)]
}

describe("the slots of a public model", () => {
  const cases: ReadonlyArray<readonly [places: number, engines: number, hogs: number, most: number]> = [
    [5, 1, 1, 4],
    [20, 1, 1, 16],
    [68, 1, 1, 55],
    [20, 1, 2, 9],
    [68, 1, 16, 5],
    [40, 4, 1, 32],
    [40, 4, 9, 5]
  ]
  for (const [places, engines, hogs, most] of cases) {
    it(`let the first request of an organization pass: ${places} slots at ${engines} engines, with ${hogs} other organizations at their limit`, () => {
      const pool = makePublic(places, engines)
      const held = Array.from({ length: hogs }, () => 0)
      for (let round = 0; round < places; round++) {
        for (const hog of held.keys()) if (pool.take(noKey, true, `hog-${hog}`) !== undefined) held[hog] = (held[hog] ?? 0) + 1
      }
      assert.isAtMost(Math.max(...held), most)
      assert.isDefined(pool.take(noKey, true, "newcomer"))
    })
  }

  it("are taken by each answer that a request asks for, so that one request leaves some to another organization", () => {
    const pool = makePublic(20)
    assert.strictEqual(pool.mostSequences, 16)
    const engine = pool.take(noKey, true, "hog", 16)
    assert.isDefined(engine)
    assert.isUndefined(pool.take(noKey, true, "hog"))
    assert.isDefined(pool.take(noKey, true, "b"))
    const large = waiting(pool, "c", null, 4)
    const small = waiting(pool, "d")
    pool.dispatch()
    assert.isDefined(small.engine)
    assert.isUndefined(large.engine)
    if (engine !== undefined) pool.leave(engine, true, "hog", 16)
    assert.isDefined(large.engine)
    assert.deepStrictEqual([engine?.outstanding, engine?.heldBy("hog"), engine?.heldBy("c")], [6, 0, 4])
  })

  it("are as many as a request of a private model's only organization asks for", () => {
    const { pool } = makePool(["e0"], 16)
    assert.strictEqual(pool.mostSequences, Number.POSITIVE_INFINITY)
    assert.isDefined(pool.take(noKey, true, "own", 64))
    assert.isUndefined(pool.take(noKey, true, "own"))
  })

  it("go to the waiting organization that holds the fewest, even before requests that waited longer", () => {
    const pool = makePublic(20)
    const held = takeAll(pool, "hog")
    const taken = [...takeAll(pool, "b"), ...takeAll(pool, "c")]
    const more = Array.from({ length: 10 }, () => waiting(pool, "hog"))
    assert.strictEqual(held.length + taken.length, 20)
    const latest = waiting(pool, "d")
    for (const engine of held.slice(0, 1)) pool.leave(engine, true, "hog")
    assert.isDefined(latest.engine)
    assert.isTrue(more.every(({ engine }) => engine === undefined))
  })

  it("are used by one organization up to its share, and its waiting requests follow as its own slots become free", () => {
    const pool = makePublic(20)
    const held = takeAll(pool, "alone")
    assert.strictEqual(held.length, 16)
    const more = Array.from({ length: 16 }, () => waiting(pool, "alone"))
    pool.dispatch()
    for (const engine of held) pool.leave(engine, true, "alone")
    assert.isTrue(more.every(({ engine }) => engine !== undefined))
  })

  it("do not count at a withdrawn engine: a new revision serves the organization at once", () => {
    const model = makePool(["a"], 16)
    model.world.serve(["old"], { isPublic: true })
    assert.strictEqual(takeAll(model.pool, "alone").length, 16)
    model.world.serve(["new"])
    assert.strictEqual(takeAll(model.pool, "alone").length, 16)
  })

  it("are shared in the queue too: the waiting requests of one organization never fill it", () => {
    const pool = makePublic(5)
    const limit = pool.waitingLimit
    let queued = 0
    for (; pool.mayWait("hog", limit); queued++) waiting(pool, "hog")
    assert.strictEqual(queued, 16)
    assert.isTrue(pool.mayWait("other", limit))
  })

  const Step = Schema.Struct({ what: Schema.Literals(["take", "wait", "leave"]), org: int(0, 5), which: int(0, 50) })
  it.prop("are never over-assigned, and no request waits if it may take one", [Schema.Array(Step).check(Schema.isBetweenLength(40, 120))], ([steps]) => {
    const pool = makePublic(20, 2)
    const held: Array<{ readonly engine: EngineState; readonly org: string }> = []
    let waiters: Array<{ readonly org: string; readonly got: ReturnType<typeof waiting> }> = []
    const heldBy = (org: string) => held.filter((one) => one.org === org).length
    for (const { org: number, what, which } of steps) {
      const org = `org-${number}`
      if (what === "take") held.push(...[pool.take(noKey, true, org)].flatMap((engine) => (engine === undefined ? [] : [{ engine, org }])))
      else if (what === "wait") waiters.push({ org, got: waiting(pool, org) })
      else {
        const [left] = held.splice(which % Math.max(1, held.length), 1)
        if (left !== undefined) pool.leave(left.engine, true, left.org)
      }
      pool.dispatch()
      for (const { got, org: owner } of waiters) if (got.engine !== undefined) held.push({ engine: got.engine, org: owner })
      waiters = waiters.filter(({ got }) => got.engine === undefined)
      const free = 20 - held.length
      if (free < 0 || waiters.some(({ org: owner }) => heldBy(owner) < 4 * free)) return false
    }
    return true
  })
})
