import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { divergenceOf, fidelityFailure, fidelityOf, type ItemOutcome, medianOf, rule1, rule2, tierOf } from "../../src/fidelity/rules.ts"

const count = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const round = (value: number) => Math.round(value * 1000) / 1000

describe("rule 1", () => {
  // Each worked out by hand: 100 sqrt((u + w - (u - w)^2 / n) / (n (n - 1))).
  const cases: ReadonlyArray<readonly [why: string, gained: number, lost: number, n: number, passed: boolean, diff: number, error: number]> = [
    ["fails without any item", 0, 0, 0, false, 0, 0],
    ["fails with one item, which shows no spread", 0, 1, 1, false, -100, 0],
    ["fails with fewer than 100 items, even if all are the same", 0, 0, 99, false, 0, 0],
    ["passes equal answers, without difference or spread", 0, 0, 100, true, 0, 0],
    ["passes a loss of one point, even if every difference is a loss", 0, 2, 200, true, -1, 0.705],
    ["passes 0 against 5 of 200: 2.5 points, and three standard errors are 3.32", 0, 5, 200, true, -2.5, 1.107],
    ["fails 0 against 9 of 200: 4.5 points, and three standard errors are 4.41", 0, 9, 200, false, -4.5, 1.47],
    ["passes 0 against 8 of 200: 4 points, and three standard errors are 4.17", 0, 8, 200, true, -4, 1.389],
    ["fails a gain like a loss of the same size", 9, 0, 200, false, 4.5, 1.47],
    ["fails 30 against 41: 5.5 points exceed the limit of five, whatever the spread is", 30, 41, 200, false, -5.5, 4.206],
    ["passes 31 against 41: exactly five points, within three standard errors", 31, 41, 200, true, -5, 4.238],
    ["passes many differences that cancel each other out", 50, 50, 200, true, 0, 5.013]
  ]
  for (const [why, gained, lost, n, passed, diff, error] of cases) {
    it(why, () => {
      const result = rule1({ gained, lost, n })
      assert.deepStrictEqual([result.passed, round(result.diffPoints), round(result.standardErrorPoints)], [passed, diff, error])
    })
  }

  it.prop("decides with integers what its figures show", [count(200), count(200), count(200)], ([gained, lost, agreeing]) => {
    const n = gained + lost + agreeing
    const { diffPoints, passed, standardErrorPoints } = rule1({ gained, lost, n })
    const size = Math.abs(diffPoints)
    const limit = Math.max(1, Math.min(3 * standardErrorPoints, 5))
    assert.isAtLeast(standardErrorPoints, 0)
    // Both agree, except at the limit itself: rounding may decide there.
    if (Math.abs(size - limit) > 1e-9) assert.strictEqual(passed, n >= 100 && size < limit)
    assert.deepStrictEqual(rule1({ gained: lost, lost: gained, n }), { passed, diffPoints: diffPoints === 0 ? 0 : -diffPoints, standardErrorPoints })
    return true
  })
})

describe("rule 2", () => {
  const cases: ReadonlyArray<
    readonly [why: string, n: number, asChild: number, baseAsChild: number, tier: "exact" | "approximate", status: "passed" | "failed" | "vacuous"]
  > = [
    ["is vacuous without any item", 0, 0, 0, "exact", "vacuous"],
    ["is vacuous if all three models answer the same", 200, 200, 200, "exact", "vacuous"],
    ["is vacuous if the base differs in 9 of 200 items", 200, 200, 191, "exact", "vacuous"],
    ["passes if the base differs in 10 of 200 items", 200, 200, 190, "exact", "passed"],
    ["is vacuous if the base differs in 10 of 201 items, less than a twentieth", 201, 201, 191, "exact", "vacuous"],
    ["fails an adapter that is not applied: R = 0", 120, 40, 40, "exact", "failed"],
    ["passes half of the way to the child: R = 40 / 80", 120, 80, 40, "exact", "passed"],
    ["fails less than half of the way: R = 39 / 80", 120, 79, 40, "exact", "failed"],
    ["passes a quarter of the way if the child is inexact: R = 20 / 80", 120, 60, 40, "approximate", "passed"],
    ["fails less than a quarter of the way: R = 19 / 80", 120, 59, 40, "approximate", "failed"],
    ["fails an adapter that is further from the child than the base: R < 0", 120, 10, 40, "approximate", "failed"],
    ["passes the answers of the child: R = 1", 120, 120, 0, "exact", "passed"]
  ]
  for (const [why, n, identicalAdapterChild, identicalBaseChild, tier, status] of cases) {
    it(why, () => {
      const counts = { identicalAdapterChild, identicalBaseChild, medianDivergenceChars: null }
      assert.deepStrictEqual(rule2({ n, tier, ...counts }), { status, ...counts })
    })
  }

  it.prop(
    "requires less if the child is inexact, and a better adapter never fails what a worse one passes",
    [count(300), count(300), count(300)],
    ([n, a, b]) => {
      const [adapter, base] = [Math.min(a, n), Math.min(b, n)]
      const status = (identicalAdapterChild: number, tier: "exact" | "approximate") =>
        rule2({ n, tier, identicalAdapterChild, identicalBaseChild: base, medianDivergenceChars: null }).status
      if (status(adapter, "exact") === "passed") {
        assert.strictEqual(status(adapter, "approximate"), "passed")
        assert.strictEqual(status(n, "exact"), "passed")
      }
      const vacuous = n - base < Math.max(10, 0.05 * n)
      assert.strictEqual(status(adapter, "exact") === "vacuous", vacuous)
      return true
    }
  )
})

describe("the first difference of two answers", () => {
  const cases: ReadonlyArray<readonly [a: string, b: string, at: number | null]> = [
    ["", "", null],
    ["same", "same", null],
    ["", "x", 0],
    ["Paris", "Paris.", 5],
    ["Paris.", "Paris", 5],
    ["abc", "abd", 2],
    // A character beyond 16 bits is one.
    ["😀😀a", "😀😀b", 2],
    ["😀", "😃", 0]
  ]
  it("is counted in code points, and a prefix differs at its end", () => {
    for (const [a, b, at] of cases) assert.strictEqual(divergenceOf(a, b), at, `${a} ${b}`)
  })
  it("is summarized by the median", () => {
    assert.strictEqual(medianOf([]), null)
    assert.strictEqual(medianOf([7]), 7)
    assert.strictEqual(medianOf([9, 1, 4]), 4)
    assert.strictEqual(medianOf([9, 1, 4, 6]), 5)
    assert.strictEqual(medianOf([1, 2]), 1.5)
  })
  it.prop("is the length of their common prefix", [Schema.String, Schema.String, Schema.String], ([beginning, a, b]) => {
    const at = divergenceOf(beginning + a, beginning + b)
    assert.strictEqual(at === null, beginning + a === beginning + b)
    if (at !== null) {
      const [left, right] = [Array.from(beginning + a), Array.from(beginning + b)]
      assert.deepStrictEqual(left.slice(0, at), right.slice(0, at))
      assert.notStrictEqual(left[at], right[at])
    }
    return true
  })
})

it("the tier is exact only if nothing but the last rounding can differ", () => {
  const good = { baseQuantized: false, everyModule: true, merged: { withinUlpMin: 0.999, othersEqual: true } }
  assert.strictEqual(tierOf(good), "exact")
  for (const worse of [
    { baseQuantized: true },
    { everyModule: false },
    { merged: null },
    { merged: { withinUlpMin: 0.9989, othersEqual: true } },
    { merged: { withinUlpMin: 1, othersEqual: false } }
  ]) {
    assert.strictEqual(tierOf({ ...good, ...worse }), "approximate")
  }
})

describe("the fidelity of an adapter", () => {
  const right = { child: true, adapter: true, base: true }
  const same: ItemOutcome = { right, adapterIsChild: true, baseIsChild: true, adapterIsBase: true, divergence: null }
  const tuned: ItemOutcome = { ...same, baseIsChild: false, adapterIsBase: false }
  const dropped: ItemOutcome = { ...same, adapterIsChild: false, baseIsChild: false, divergence: 3 }
  const elsewhere: ItemOutcome = { ...dropped, adapterIsBase: false, divergence: 6 }
  const of = (...outcomes: ReadonlyArray<ItemOutcome>) => {
    const fidelity = fidelityOf({ suite: "s", suiteVersion: 1, outcomes, tier: "exact", withinUlpMin: 1, measuredAt: 5 })
    return { fidelity, code: fidelityFailure(fidelity, outcomes)?.code ?? null }
  }
  const times = (length: number, outcome: ItemOutcome) => Array.from({ length }, () => outcome)

  it("fails without any answered item", () => {
    const { code, fidelity } = of()
    assert.strictEqual(code, "fidelity_not_run")
    assert.deepStrictEqual(fidelity, {
      ...{ tier: "exact", suite: "s", suiteVersion: 1, n: 0, passed: { child: 0, adapter: 0, base: 0 } },
      rule1: { passed: false, diffPoints: 0, standardErrorPoints: 0 },
      rule2: { status: "vacuous", identicalAdapterChild: 0, identicalBaseChild: 0, medianDivergenceChars: null },
      ...{ withinUlpMin: 1, measuredAt: 5 }
    })
  })

  it("three equal models are vacuous and do not fail", () => {
    const { code, fidelity } = of(...times(200, same))
    assert.deepStrictEqual([code, fidelity.rule1.passed, fidelity.rule2.status], [null, true, "vacuous"])
  })

  it("answers of the child pass, answers of the base mean that the adapter was not applied, and other answers fail", () => {
    assert.strictEqual(of(...times(150, tuned), ...times(50, same)).code, null)
    const { code, fidelity } = of(...times(150, dropped), ...times(50, same))
    assert.deepStrictEqual([code, fidelity.rule2.medianDivergenceChars], ["adapter_not_applied", 3])
    assert.strictEqual(of(...times(150, elsewhere), ...times(50, same)).code, "fidelity_failed")
    assert.strictEqual(of(...times(180, tuned), ...times(20, { ...tuned, right: { ...right, adapter: false } })).code, "fidelity_failed")
  })
})
