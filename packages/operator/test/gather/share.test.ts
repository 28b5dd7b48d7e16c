import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Claim, share } from "../../src/gather/capacity/share.ts"

type Numbers = Readonly<Record<string, number>>
const ask = (organization: string, free: number, reserved: Numbers = {}, older: Numbers = {}, elsewhere = 0): Claim => ({
  organization,
  free,
  reserved: new Map(Object.entries(reserved)),
  elsewhere,
  older: new Map(Object.entries(older))
})
const goes = (claim: Claim): boolean => {
  const { ahead, freeSlots } = share(claim)
  return freeSlots > ahead
}

const cases: ReadonlyArray<readonly [promise: string, claim: Claim, goes: boolean]> = [
  ["a free engine goes to the run that needs one", ask("a", 1), true],
  ["without a free engine everybody waits", ask("a", 0), false],
  ["older runs go first", ask("a", 1, {}, { b: 1 }), false],
  ["as many runs continue as there are engines", ask("a", 2, {}, { b: 1 }), true],
  ["another organization's reservation is not available", ask("a", 1, { b: 1 }), false],
  ["the rest is", ask("a", 2, { b: 1 }), true],
  ["a reservation on other host classes of the same nodes is not available either", ask("a", 1, {}, {}, 1), false],
  ["one's own reservation is used first, past older runs of others", ask("a", 1, { a: 1 }, { b: 3 }), true],
  ["one's own older runs go first on it", ask("a", 1, { a: 1 }, { a: 1 }), false],
  ["beyond its reservation an organization is like any other", ask("a", 2, { a: 1 }, { a: 1 }), true],
  ["and goes behind older runs of other organizations", ask("a", 2, { a: 1 }, { a: 1, b: 1 }), false],
  ["an older run with a reservation does not delay others", ask("a", 2, { b: 1 }, { b: 1 }), true],
  ["a run beyond its organization's reservation does", ask("a", 2, { b: 1 }, { b: 2 }), false],
  ["a reservation creates no engines: after GPUs were lost, none is available", ask("a", 0, { a: 2 }), false],
  ["if fewer engines exist than are reserved, a run with a reservation continues", ask("a", 1, { a: 2, b: 2 }), true],
  ["and a run without one does not", ask("c", 1, { a: 2, b: 2 }), false]
]

describe("a share of the pool", () => {
  for (const [promise, claim, expected] of cases) it(promise, () => assert.strictEqual(goes(claim), expected))

  it.prop(
    "without reservations depends on free engines and on older runs",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })), Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))],
    ([free, older]) => assert.deepStrictEqual(share(ask("a", free, {}, { b: older, a: 1 })), { freeSlots: free, ahead: older + 1 })
  )

  it.prop(
    "without a reservation never includes an engine that another organization may still claim",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })), Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))],
    ([free, reserved]) => assert.strictEqual(goes(ask("a", free, { b: reserved })), free > reserved)
  )
})
