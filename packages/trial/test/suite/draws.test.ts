import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { drawer } from "../../src/promptTokens.ts"
import { cellShares, type Design, designsFor, expectedShares, mostTokens, repetitionPenalty, type Shaping, sharesOf } from "../../src/suite/draws/designs.ts"
import { choiceTexts } from "../../src/suite/draws/drawTokens.ts"
import { improbability } from "../../src/suite/draws/exactBinomial.ts"
import { penalty, repeatedChance, subtracted } from "../../src/suite/draws/pairDesigns.ts"
import { type Count, judgeCounts, pooled } from "../../src/suite/samplingDistribution.ts"
import { extentOf, thresholds, tinyParameters } from "../../src/suite/thresholds.ts"

const seed = Number(process.env.SEATRIAL_TEST_SEED ?? Date.now() % 1e9)
const draw = drawer(seed)
const unit = () => draw(2 ** 30) / 2 ** 30
/** Number of simulated runs of a right engine. */
const trials = Number(process.env.SEATRIAL_DRAW_TRIALS ?? 1_000)
const ways = ["texts", "texts streamed", "messages", "messages streamed"]
const { draws } = extentOf(tinyParameters)
const drawsOf = (field: string) => (field === "temperature" ? (draws * thresholds.temperatureDraws) / ways.length : draws)

const designs = designsFor(mostTokens)
type Shares = (design: Design) => ReadonlyArray<number>

/** The counts of a trial whose true shares are these. Penalties that subtract have the strength `strength`. */
const trialOf = (shares: Shares, strength: (field: string) => number = () => 1): ReadonlyArray<Count & { readonly truth: number }> =>
  ways.flatMap((way) => [
    ...designs.flatMap((design) => {
      const expected = expectedShares(design)
      return shares(design).map((truth, cell) => ({
        field: design.field,
        cell,
        way,
        hits: 0,
        draws: drawsOf(design.field),
        chance: expected[cell] ?? 0,
        truth
      }))
    }),
    ...subtracted.map((field) => ({ field, cell: 0, way, hits: 0, draws, chance: repeatedChance(penalty), truth: repeatedChance(penalty * strength(field)) }))
  ])

const hitsTable = new Map<string, Float64Array>()
/** A count of hits with its chance, by the table of all chances. */
const hitsOf = (count: number, chance: number): number => {
  if (chance <= 0 || chance >= 1) return chance <= 0 ? 0 : count
  const key = `${count} ${chance}`
  const known = hitsTable.get(key)
  const table = known ?? new Float64Array(count + 1)
  if (known === undefined) {
    let logs = count * Math.log1p(-chance)
    let sum = 0
    for (let hits = 0; hits <= count; hits++) {
      if (hits > 0) logs += Math.log((count - hits + 1) / hits) + Math.log(chance / (1 - chance))
      sum += Math.exp(logs)
      table[hits] = sum
    }
    hitsTable.set(key, table)
  }
  const at = unit()
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((table[middle] ?? 1) > at) high = middle
    else low = middle + 1
  }
  return low
}

const known = new Map<string, number>()
const improbabilityOf = (count: Count): number => {
  const key = `${count.hits} ${count.draws} ${count.chance}`
  const value = known.get(key) ?? improbability(count, thresholds.drawTolerance)
  known.set(key, value)
  return value
}

/** How many of some trials alarm. */
const alarms = (trials: number, counts: ReturnType<typeof trialOf>): number => {
  let count = 0
  for (let trial = 0; trial < trials; trial++) {
    const drawn = counts.map((count) => ({ ...count, hits: hitsOf(count.draws, count.truth) }))
    const all = [...drawn, ...pooled(drawn)]
    if (all.some((count) => improbabilityOf(count) < thresholds.drawAlarm / all.length)) count++
  }
  return count
}

const moved = (share: number, nats: number) => (share <= 0 || share >= 1 ? share : 1 / (1 + ((1 - share) / share) * Math.exp(-nats)))

describe(`counts of drawn tokens (seed ${seed})`, () => {
  it("alarm in at most 1 of 1,000 runs, although all logits of a right engine are off by the tolerance", () => {
    const most = trials * thresholds.drawAlarm
    // Six standard deviations more than the most that is expected.
    const limit = most + 6 * Math.sqrt(most) + 6
    assert.isAtMost(
      alarms(
        trials,
        trialOf((design) => expectedShares(design).map((share) => moved(share, thresholds.drawTolerance)))
      ),
      limit
    )
    assert.isAtMost(alarms(trials, trialOf(expectedShares)), limit / 2)
  }, 120_000)

  const shaped =
    (field: string, change: (shaping: Shaping) => Shaping): Shares =>
    (design) =>
      design.field === field ? cellShares(design, sharesOf(design.logits, change(design.shaping))) : expectedShares(design)
  const divided =
    (divisor: number): Shares =>
    (design) =>
      design.field === "repetition_penalty"
        ? cellShares(
            design,
            sharesOf(
              design.logits.map((logit) => logit / divisor),
              design.shaping
            )
          )
        : expectedShares(design)
  const faults: ReadonlyArray<readonly [name: string, shares: Shares, strength?: (field: string) => number]> = [
    ["a temperature of 0.9 of itself", shaped("temperature", (shaping) => ({ ...shaping, temperature: 0.9 * shaping.temperature }))],
    ["a temperature that is applied twice", shaped("temperature", (shaping) => ({ ...shaping, temperature: shaping.temperature ** 2 }))],
    ["a top_p of 1.1 of itself", shaped("top_p", (shaping) => ({ ...shaping, topP: 1.1 * shaping.topP }))],
    ["a top_p of 0.9 of itself", shaped("top_p", (shaping) => ({ ...shaping, topP: 0.9 * shaping.topP }))],
    ["half of top_k", shaped("top_k", (shaping) => ({ ...shaping, topK: shaping.topK / 2 }))],
    ["no top_k", shaped("top_k", (shaping) => ({ ...shaping, topK: 0 }))],
    ["no min_p", shaped("min_p", (shaping) => ({ ...shaping, minP: 0 }))],
    ["half of repetition_penalty", divided(1 + (repetitionPenalty - 1) / 2)],
    ["half of presence_penalty", expectedShares, (field) => (field === "presence_penalty" ? 0.5 : 1)],
    ["half of frequency_penalty", expectedShares, (field) => (field === "frequency_penalty" ? 0.5 : 1)]
  ]
  for (const [name, shares, strength] of faults) {
    it(`find ${name} in 95 of 100 runs`, () => {
      assert.isAtLeast(alarms(200, trialOf(shares, strength)), 190)
    })
  }

  it("of different chances are never added up", () => {
    const count = { field: "random_numbers", cell: 0, hits: 40, draws: 80, chance: 0.5 }
    const counts = [
      { ...count, way: "texts" },
      { ...count, way: "texts streamed" },
      { ...count, way: "messages", chance: 0.7 }
    ]
    assert.deepStrictEqual(pooled(counts), [{ ...count, way: "all ways", hits: 80, draws: 160 }])
  })

  it("find a temperature that is applied after a cut", () => {
    for (const field of ["top_p", "min_p"]) {
      const design = designs.find((each) => each.field === field)
      if (design === undefined) return assert.fail(field)
      // The tokens that remain after a cut at temperature 1, with their shares at the temperature of the design.
      const remaining = sharesOf(design.logits, { ...design.shaping, temperature: 1 }).map((share) => share > 0)
      const late = cellShares(
        design,
        sharesOf(
          design.logits.map((logit, at) => (remaining[at] === true ? logit : Number.NEGATIVE_INFINITY)),
          { ...design.shaping, topP: 1, minP: 0 }
        )
      )
      assert.isAtLeast(
        alarms(
          200,
          trialOf((each) => (each === design ? late : expectedShares(each)))
        ),
        190,
        field
      )
    }
  })

  it("are judged exactly", () => {
    assert.strictEqual(improbability({ hits: 1, draws: 100, chance: 0 }, 0.1), 0)
    assert.strictEqual(improbability({ hits: 0, draws: 100, chance: 0 }, 0.1), 1)
    assert.strictEqual(improbability({ hits: 5, draws: 10, chance: 0.5 }, 0), 1)
    assert.approximately(improbability({ hits: 0, draws: 10, chance: 0.5 }, 0), 2 / 2 ** 10, 1e-12)
    assert.approximately(improbability({ hits: 9, draws: 10, chance: 0.5 }, 0), (2 * 11) / 2 ** 10, 1e-12)
    assert.isAbove(improbability({ hits: 9, draws: 10, chance: 0.5 }, 0.1), (2 * 11) / 2 ** 10)
  })

  it.effect("are named in the failure, and the second run decides", () =>
    Effect.gen(function* () {
      const count: Count = { field: "top_k", cell: 4, way: "texts", hits: 3, draws: 240, chance: 0 }
      const failure = yield* Effect.flip(judgeCounts([count]))
      assert.strictEqual(failure.detail, "top_k, texts: 3 of 240, expected 0.0%")
      assert.isTrue(failure.open)
      assert.strictEqual(yield* judgeCounts([{ ...count, hits: 0 }]), "1 counts, the least likely one 1.0e+0")
    })
  )
})

describe("drawn answers", () => {
  it("are read by choice, whole and from the frames of a stream", () => {
    const answer = JSON.stringify({
      choices: [
        { index: 1, text: " b" },
        { index: 0, message: { content: "a ", reasoning: null } }
      ]
    })
    assert.deepStrictEqual(choiceTexts([answer]), ["b", "a"])
    const frames = [
      { choices: [{ index: 0, delta: { role: "assistant", content: "" } }] },
      { choices: [{ index: 1, delta: { reasoning_content: "th" } }] },
      { choices: [{ index: 0, delta: { content: " x" } }] },
      { choices: [{ index: 1, delta: { reasoning_content: "e" } }] },
      { choices: [] }
    ]
    assert.deepStrictEqual(choiceTexts(frames.map((frame) => JSON.stringify(frame))), ["x", "the"])
  })
})
