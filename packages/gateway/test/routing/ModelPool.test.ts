import { assert, describe, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Schema } from "effect"
import type { EngineState } from "../../src/routing/EngineState.ts"
import { laterRevision, makePool, nameOf, waiting } from "./pool.ts"

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Fails three times, which ejects the engine unless it is the last. */
const failOften = (pool: ReturnType<typeof makePool>["pool"], engine: EngineState | undefined) => {
  if (engine !== undefined) for (let time = 0; time < 3; time++) pool.fail(engine)
}

const nobody = () => null

describe("the load that a gateway reports", () => {
  it("is what runs on each engine, and what waits for any, also before there is one", () => {
    const { pool, world } = makePool(["a", "b"], 1)
    const loads = () => pool.loads().map(({ pod, running, waiting }) => [pod, running, waiting])
    const [first] = Array.from({ length: 10 }, () => pool.take(nobody, true, "org"))
    waiting(pool, "org")
    assert.deepStrictEqual(loads(), [
      ["a", 5, 0],
      ["b", 5, 0],
      ["", 0, 1]
    ])
    if (first !== undefined) pool.leave(first, true, "org")
    assert.deepStrictEqual(loads().at(-1), ["", 0, 0])
    world.serve([])
    waiting(pool, "org")
    assert.deepStrictEqual(loads(), [["", 0, 1]])
  })
})

describe("the answers that a gateway reports", () => {
  const moving = (isPublic: boolean) => {
    const { pool, world } = makePool(["a", "b"], 1)
    const retiring = { revisionId: pool.route.revisionId, hfRevision: "e".repeat(40), engineVersion: "reference-0" }
    const [first, second] = pool.route.endpoints
    const answers = () => pool.loads().map(({ answered, failed, pod }) => [pod, answered, failed])
    const move = () => {
      if (first === undefined || second === undefined) return
      world.route = { ...world.route, isPublic, revisionId: laterRevision, endpoints: [first, { ...second, retiring }] }
      pool.refresh()
    }
    return { pool, answers, move }
  }
  const organizations = ["1", "2", "3"].map((digit) => Schema.decodeSync(OrgId)(`org_${digit.repeat(26)}`))

  it("are those of each engine since a move to a new revision began, and none otherwise", () => {
    const { answers, move, pool } = moving(false)
    const [own] = organizations
    if (own === undefined) return assert.fail("no organization")
    for (const each of pool.engines) pool.answered(each)
    assert.deepStrictEqual(answers(), [
      ["a", 0, 0],
      ["b", 0, 0],
      ["", 0, 0]
    ])
    move()
    for (const each of pool.engines) pool.answered(each)
    const [engine] = pool.engines
    if (engine === undefined) return assert.fail("no engine")
    for (let time = 0; time < 3; time++) pool.lose(engine, own)
    pool.failAnswer(engine, own)
    assert.deepStrictEqual(answers(), [
      ["a", 1, 4],
      ["b", 1, 0],
      ["", 0, 0]
    ])
  })

  it("do not include failures of one organization alone if others share the model", () => {
    const { answers, move, pool } = moving(true)
    move()
    const [engine] = pool.engines
    const [hostile, ...others] = organizations
    if (engine === undefined || hostile === undefined) return assert.fail("no engine")
    for (let time = 0; time < 9; time++) pool.lose(engine, hostile)
    assert.deepStrictEqual(answers()[0], ["a", 0, 0])
    for (const organization of others) pool.failAnswer(engine, organization)
    assert.deepStrictEqual(answers()[0], ["a", 0, 2])
  })
})

describe("a model's engines", () => {
  it("get their measured concurrency plus four, and further requests wait until one ends", () => {
    const { pool } = makePool(["a"], 2)
    const held = Array.from({ length: 6 }, () => pool.take(nobody, true, "org"))
    assert.isTrue(held.every((engine) => engine !== undefined))
    assert.isUndefined(pool.take(nobody, true, "org"))
    const got = waiting(pool, "org")
    pool.dispatch()
    assert.isUndefined(got.engine)
    const [first] = held
    if (first !== undefined) pool.leave(first, true, "org")
    assert.strictEqual(got.engine, first)
    assert.isUndefined(pool.take(nobody, true, "org"))
  })

  it("that start get the waiting requests before later ones", () => {
    const { pool, world } = makePool(["a"], 1)
    for (let count = 0; count < 5; count++) pool.take(nobody, true, "org")
    const got = [waiting(pool, "org"), waiting(pool, "org")]
    assert.isUndefined(pool.take(nobody, true, "org"))
    world.serve(["a", "b"])
    assert.deepStrictEqual(
      got.map(({ engine }) => engine && nameOf(engine)),
      ["b", "b"]
    )
  })

  it("that start with a long queue get twice as many requests each quarter of a second", () => {
    const { pool, world } = makePool([], 60)
    const crowd = Array.from({ length: 80 }, () => waiting(pool, "org"))
    const served = () => crowd.filter(({ engine }) => engine !== undefined).length
    world.serve(["a"])
    const received = [served()]
    for (const now of [249, 250, 500, 750, 1_000]) {
      world.now = now
      pool.dispatch()
      received.push(served())
    }
    pool.close()
    assert.deepStrictEqual(received, [8, 8, 16, 32, 64, 64])
  })

  it("that are withdrawn get no new requests; running ones continue, and waiting ones go to the next revision", () => {
    const { pool, world } = makePool(["old"], 1)
    const streams = Array.from({ length: 5 }, () => pool.take(nobody, true, "org"))
    const got = waiting(pool, "org")
    world.serve(["new"], { revisionId: laterRevision })
    assert.deepStrictEqual([got.engine && nameOf(got.engine), pool.engines.map(nameOf)], ["new", ["new"]])
    const [old] = streams
    assert.strictEqual(old?.outstanding, 5)
    for (const engine of streams) if (engine !== undefined) pool.leave(engine, true, "org")
    assert.strictEqual(old?.outstanding, 0)
  })

  it("serve organizations round-robin, each in order of arrival", () => {
    const { pool, world } = makePool([], 1)
    const order: Array<string> = []
    for (const [name, org] of [...Array.from({ length: 5 }, (_, index) => [`a${index}`, "a"]), ["b0", "b"], ["b1", "b"], ["c0", "c"]]) {
      if (name === undefined || org === undefined) continue
      const waiter = { orgId: org, key: null, streamed: true, sequences: 1, gone: () => {}, give: () => void order.push(name) }
      pool.queue.add(org, waiter)
    }
    world.serve(["x", "y"])
    pool.close()
    assert.deepStrictEqual(order, ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"])
  })

  it("report to waiting requests that the model was deleted", () => {
    const { pool, world } = makePool([], 1)
    const got = waiting(pool, "org")
    world.gone = true
    pool.dispatch()
    assert.deepStrictEqual([got.gone, pool.queue.size], [true, 0])
  })

  it("are ejected for ten seconds after three failures, twice as long each time up to two minutes, except for the last one", () => {
    const { pool, world } = makePool(["a", "b"])
    const [a, b] = pool.engines
    const times: Array<number> = []
    for (let round = 0; round < 6; round++) {
      failOften(pool, a)
      times.push((a?.ejectedUntil ?? 0) - world.now)
      failOften(pool, b)
      assert.isFalse(b?.isEjected(world.now))
      assert.strictEqual(pool.take(nobody, true, "org"), b)
      world.now = a?.ejectedUntil ?? 0
      assert.isFalse(a?.isEjected(world.now))
    }
    assert.deepStrictEqual(times, [10_000, 20_000, 40_000, 80_000, 120_000, 120_000])
    world.now += 120_001
    failOften(pool, a)
    assert.strictEqual((a?.ejectedUntil ?? 0) - world.now, 10_000, "long ago is forgotten")
  })

  it("get one request after an ejection, all once that is answered, and none if it fails", () => {
    const { pool, world } = makePool(["a", "b"], 20)
    const [a, b] = pool.engines
    const taken = () => Array.from({ length: 12 }, () => pool.take(nobody, true, "org"))
    const givenTo = (engine: EngineState | undefined) => taken().filter((each) => each === engine).length
    if (a === undefined || b === undefined) throw new Error("no engines")
    failOften(pool, a)
    world.now = a.ejectedUntil
    assert.deepStrictEqual([givenTo(a), a.outstanding, b.outstanding], [1, 1, 11])
    pool.fail(a)
    assert.deepStrictEqual([a.isEjected(world.now), a.ejectedUntil - world.now], [true, 20_000])
    pool.leave(a, true, "org")
    world.now = a.ejectedUntil
    pool.take(nobody, true, "org")
    assert.strictEqual(a.outstanding, 1)
    pool.answered(a)
    assert.deepStrictEqual([a.allowed(24, world.now), a.allowed(24, world.now + 500)], [8, 24])
  })

  it("get more requests after an ejection as soon as their token counter moves", () => {
    const { pool, world } = makePool(["a", "b"], 20)
    const [a] = pool.engines
    if (a === undefined) throw new Error("no engine")
    const report = (tokens: number) => a.recordMetrics({ running: 1, waiting: 0, cacheUse: 0, tokens }, world.now)
    report(5)
    failOften(pool, a)
    world.now = a.ejectedUntil
    report(6)
    assert.strictEqual(a.allowed(24, world.now), 1, "without a request")
    a.enter(world.now, false, "org")
    report(6)
    assert.strictEqual(a.allowed(24, world.now), 1, "the counter stands still")
    report(7)
    assert.strictEqual(a.allowed(24, world.now), 8)
  })

  it("get a waiting request as soon as they have answered after an ejection", () => {
    const { pool, world } = makePool(["a", "b"], 1)
    const [a] = pool.engines
    failOften(pool, a)
    world.now = a?.ejectedUntil ?? 0
    for (let request = 0; request < 6; request++) pool.take(nobody, true, "org")
    const got = waiting(pool, "org")
    pool.dispatch()
    assert.isUndefined(got.engine)
    if (a !== undefined) pool.answered(a)
    assert.strictEqual(got.engine, a)
  })

  it("are readmitted without limit if all others are ejected", () => {
    const { pool, world } = makePool(["a", "b"], 20)
    const [a, b] = pool.engines
    failOften(pool, a)
    world.now = a?.ejectedUntil ?? 0
    failOften(pool, b)
    assert.deepStrictEqual([b?.isEjected(world.now), a?.allowed(24, world.now + 1_000)], [true, 24])
  })

  it("are readmitted at once if all others are withdrawn", () => {
    const { pool, world } = makePool(["a", "b", "c"])
    failOften(pool, pool.engines[0])
    world.now = 1
    failOften(pool, pool.engines[1])
    world.serve(["a", "b"])
    assert.deepStrictEqual(
      pool.engines.map((engine) => engine.isEjected(1)),
      [false, true]
    )
  })

  it("are not ejected for failures that are further apart", () => {
    const { pool, world } = makePool(["a", "b"])
    const [a] = pool.engines
    for (let time = 0; time < 10; time++) {
      if (a !== undefined) pool.fail(a)
      world.now += 5_001
    }
    assert.strictEqual(a?.ejectedUntil, 0)
  })

  const failing: ReadonlyArray<readonly [string, boolean, string]> = [
    ["three answers to several organizations", true, "aba"],
    ["five answers to one organization", false, "aaaaa"],
    ["six answers to one organization", true, "aaaaaa"],
    ["each answer of one organization, while others succeed", false, "aaaa+aaaa+aaaa+aaaa+"],
    ["two answers to several organizations", false, "ab"]
  ]
  for (const [which, expected, answers] of failing) {
    it(`are ${expected ? "" : "not "}out for failing ${which}, and the last one never`, () => {
      const { pool, world } = makePool(["a", "b"])
      const ids = { a: world.route.orgId, b: Schema.decodeSync(OrgId)(`org_${"0".repeat(25)}2`) }
      const play = (engine: EngineState) => {
        for (const answer of answers) {
          world.now += 7_000
          if (answer === "+") engine.answered(world.now)
          else pool.failAnswer(engine, answer === "a" ? ids.a : ids.b)
        }
      }
      const [a, b] = pool.engines
      if (a === undefined || b === undefined) return assert.fail()
      play(a)
      assert.strictEqual(a.isEjected(world.now), expected)
      if (!expected) return
      world.now = a.ejectedUntil - 1 - 7_000 * answers.length
      play(b)
      assert.isFalse(b.isEjected(world.now))
    })
  }

  const Step = Schema.Struct({ what: Schema.Literals(["take", "wait", "leave", "fail", "withdraw", "add", "time"]), which: int(0, 5) })
  it.prop(
    "are never all out, never have more than they may, and nobody waits while one has room",
    [Schema.Array(Step).check(Schema.isBetweenLength(40, 80))],
    ([steps]) => {
      const { pool, world } = makePool(["e0", "e1", "e2"], 1)
      const held: Array<EngineState> = []
      const waiters: Array<ReturnType<typeof waiting>> = []
      let names = 3
      const served = () => pool.engines.map(nameOf)
      for (const { what, which } of steps) {
        const engine = pool.engines[which % Math.max(1, pool.engines.length)]
        if (what === "take") held.push(...[pool.take(() => which, true, "org")].flatMap((taken) => taken ?? []))
        else if (what === "wait" && waiters.length < 40) waiters.push(waiting(pool, `org-${which}`, which))
        else if (what === "leave") {
          const [left] = held.splice(which % Math.max(1, held.length), 1)
          if (left !== undefined) pool.leave(left, true, "org")
        } else if (what === "fail") failOften(pool, engine)
        else if (what === "withdraw" && engine !== undefined) world.serve(served().filter((name) => name !== nameOf(engine)))
        else if (what === "add" && served().length < 6) world.serve([...served(), `e${names++}`])
        else if (what === "time") world.now += 4_000
        pool.dispatch()
        for (const got of waiters.filter(({ engine }) => engine !== undefined)) {
          waiters.splice(waiters.indexOf(got), 1)
          if (got.engine !== undefined) held.push(got.engine)
        }
        const { now } = world
        if (pool.engines.length > 0 && pool.engines.every((one) => one.isEjected(now))) return false
        if (pool.engines.some((one) => one.outstanding > pool.limit || one.outstanding !== held.filter((other) => other === one).length)) return false
        if (pool.queue.size > 0 && pool.engines.some((one) => !one.isEjected(now) && one.outstanding < one.allowed(pool.limit, now))) return false
      }
      pool.close()
      return true
    }
  )

  const hung: ReadonlyArray<readonly [string, boolean, (engine: EngineState) => void]> = [
    ["has a silent stream", true, (engine) => engine.enter(0, true, "org")],
    ["is idle", false, () => {}],
    [
      "sent a frame",
      false,
      (engine) => {
        engine.enter(0, true, "org")
        engine.pulse.at = 20_000
      }
    ],
    ["works on an answer that is not streamed, and has no counters", false, (engine) => engine.enter(0, false, "org")],
    [
      "works on one and its counters stand still",
      true,
      (engine) => {
        engine.recordMetrics({ running: 1, waiting: 0, cacheUse: 0, tokens: 7 }, 0)
        engine.enter(0, false, "org")
        engine.recordMetrics({ running: 1, waiting: 0, cacheUse: 0, tokens: 7 }, 30_000)
      }
    ],
    [
      "works on one and its counters move",
      false,
      (engine) => {
        engine.enter(0, false, "org")
        engine.recordMetrics({ running: 1, waiting: 0, cacheUse: 0, tokens: 7 }, 20_000)
      }
    ],
    [
      "says that it works on nothing, while a caller reads slowly",
      false,
      (engine) => {
        engine.enter(0, true, "org")
        engine.recordMetrics({ running: 0, waiting: 0, cacheUse: 0, tokens: null }, 30_000)
      }
    ]
  ]
  for (const [which, expected, prepare] of hung) {
    it(`are ${expected ? "" : "not "}taken for hung where one ${which}`, () => {
      const [engine] = makePool(["a"]).pool.engines
      if (engine === undefined) return assert.fail()
      prepare(engine)
      assert.strictEqual(engine.isHung(30_001, 30_000), expected)
    })
  }
})
