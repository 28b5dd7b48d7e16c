import { assert, describe, it } from "@effect/vitest"
import { TokenBuckets } from "../src/index.ts"

const rate = { perSecond: 2, burst: 4 }
const draw = (name: string) => ({ name, rate })

const drawn = (buckets: TokenBuckets, count: number, now: number, ...names: ReadonlyArray<string>): number =>
  Array.from({ length: count }).filter(() => buckets.draw(names.map(draw), now) === null).length

describe("token buckets", () => {
  it("hold their burst, refill at their rate, and report when the next token is available", () => {
    const buckets = new TokenBuckets()
    assert.strictEqual(drawn(buckets, 9, 0, "a"), 4)
    assert.deepStrictEqual(buckets.draw([draw("a")], 0), { name: "a", retryAfter: 1 })
    assert.deepStrictEqual(buckets.draw([{ name: "slow", rate: { perSecond: 0.1, burst: 1 } }], 0), null)
    assert.deepStrictEqual(buckets.draw([draw("b"), { name: "slow", rate: { perSecond: 0.1, burst: 1 } }], 0), { name: "slow", retryAfter: 10 })
    assert.strictEqual(drawn(buckets, 9, 1_000, "a"), 2)
    assert.strictEqual(drawn(buckets, 9, 60_000, "a"), 4)
    // A clock that goes back adds no tokens and removes none.
    assert.strictEqual(drawn(buckets, 9, 0, "a"), 0)
  })

  it("take from all or from none, and accept a returned token", () => {
    const buckets = new TokenBuckets()
    assert.strictEqual(drawn(buckets, 4, 0, "a"), 4)
    assert.strictEqual(drawn(buckets, 9, 0, "b", "a"), 0)
    assert.strictEqual(drawn(buckets, 9, 0, "b"), 4)
    buckets.giveBack("a")
    assert.strictEqual(drawn(buckets, 9, 0, "b", "a"), 0)
    assert.strictEqual(drawn(buckets, 9, 0, "a"), 1)
  })

  it("refuse a draw that takes none while the bucket is empty", () => {
    const buckets = new TokenBuckets()
    const check = () => buckets.draw([{ ...draw("a"), takesNone: true }], 0)
    for (let index = 0; index < 9; index++) assert.isNull(check())
    assert.strictEqual(drawn(buckets, 9, 0, "a"), 4)
    assert.deepStrictEqual(check(), { name: "a", retryAfter: 1 })
  })

  it("remove full buckets, and never exceed their number", () => {
    const buckets = new TokenBuckets(100)
    for (let index = 0; index < 1_000; index++) {
      drawn(buckets, 4, 0, `early ${index}`)
      assert.isAtMost(buckets.size, 100)
    }
    // The latest buckets are still empty.
    assert.strictEqual(drawn(buckets, 1, 0, "early 999"), 0)
    for (let index = 0; index < 100; index++) drawn(buckets, 1, 60_000, `late ${index}`)
    for (let index = 0; index < 60; index++) drawn(buckets, 1, 120_000, `last ${index}`)
    assert.isAtMost(buckets.size, 61)
  })
})
