import type { Fields } from "../SuiteSubject.ts"

/** Settings that shape a distribution. `topK` 0, `topP` 1 and `minP` 0 are off. */
export interface Shaping {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
}

export const unshaped: Shaping = { temperature: 1, topP: 1, topK: 0, minP: 0 }

/** Shares of tokens with these logits. Engines apply the temperature first, and then remove unlikely tokens. */
export const sharesOf = (logits: ReadonlyArray<number>, { minP, temperature, topK, topP }: Shaping): ReadonlyArray<number> => {
  const highest = Math.max(...logits)
  const weights = logits.map((logit) => Math.exp((logit - highest) / temperature))
  const order = weights.map((_, at) => at).toSorted((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0))
  const likely = order.filter((at) => (weights[at] ?? 0) >= minP).slice(0, topK === 0 ? undefined : topK)
  const total = likely.reduce((all, at) => all + (weights[at] ?? 0), 0)
  let before = 0
  const remaining = likely.filter((at) => {
    const isKept = before < topP * total
    before += weights[at] ?? 0
    return isKept
  })
  const left = remaining.reduce((all, at) => all + (weights[at] ?? 0), 0)
  return weights.map((weight, at) => (remaining.includes(at) ? weight / left : 0))
}

/** One test of one setting: how likely some known tokens are made, and which of them are counted together. */
export interface Design {
  /** The tested field of requests. */
  readonly field: string
  /** Logits that the tokens get by a bias, from the likeliest on. */
  readonly logits: ReadonlyArray<number>
  readonly shaping: Shaping
  /** Places of the tokens that are counted together. */
  readonly cells: ReadonlyArray<ReadonlyArray<number>>
}

const from = (start: number, count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, at) => start + at)
const times = (count: number, value: number): ReadonlyArray<number> => Array.from({ length: count }, () => value)

/**
 * How much likelier one token must be than each of `others`, so that a wrong temperature changes its share most: the
 * largest variance of the logit.
 */
const gapTo = (others: number): number => {
  const variance = (gap: number) => (gap * gap * others * Math.exp(-gap)) / (1 + others * Math.exp(-gap)) ** 2
  return from(0, 160)
    .map((step) => step / 20)
    .reduce((best, gap) => (variance(gap) > variance(best) ? gap : best))
}

/** One token against all others. A repetition penalty divides all logits above zero, as a temperature does. */
const oneAgainstOthers = (field: string, tokens: number, divisor: number, shaping: Shaping): Design => ({
  field,
  logits: [gapTo(tokens - 1) * divisor, ...times(tokens - 1, 0)],
  shaping,
  cells: [[0]]
})

/** The largest value that both engines accept. */
export const repetitionPenalty = 2
const cutTemperature = 1.5

/** Number of tokens that the designs need at least, and can use. */
export const fewestTokens = 12
export const mostTokens = 32

/**
 * The designs. Their limits are in the middle between two tokens, at a distance that rounding of logits cannot bridge.
 * Two of the cuts are at another temperature than 1, so that a temperature that is applied after a cut shows.
 */
export const designsFor = (tokens: number): ReadonlyArray<Design> => [
  oneAgainstOthers("temperature", tokens, cutTemperature, { ...unshaped, temperature: cutTemperature }),
  { field: "logit_bias", logits: times(4, 0), shaping: unshaped, cells: from(0, 4).map((at) => [at]) },
  { field: "top_k", logits: [...times(4, 1), ...times(8, 0)], shaping: { ...unshaped, topK: 4 }, cells: [[0], [1], [2], [3], from(4, 8)] },
  {
    field: "top_p",
    logits: [...times(4, 0.16625), 0.07, ...times(5, 0.053)].map((share) => Math.log(share) * cutTemperature),
    shaping: { ...unshaped, temperature: cutTemperature, topP: 0.7 },
    cells: [from(0, 4), [4], from(5, 5)]
  },
  {
    field: "min_p",
    logits: [1, ...times(3, 0.3), ...times(6, 0.134)].map((share) => Math.log(share) * cutTemperature),
    shaping: { ...unshaped, temperature: cutTemperature, minP: 0.2 },
    cells: [[0], from(1, 3), from(4, 6)]
  },
  oneAgainstOthers("repetition_penalty", tokens, repetitionPenalty, unshaped)
]

/** The shares of the cells of a design. */
export const cellShares = ({ cells }: Pick<Design, "cells">, shares: ReadonlyArray<number>): ReadonlyArray<number> =>
  cells.map((cell) => cell.reduce((sum, at) => sum + (shares[at] ?? 0), 0))

/** What a right engine must draw. */
export const expectedShares = (design: Design): ReadonlyArray<number> => {
  const divisor = design.field === "repetition_penalty" ? repetitionPenalty : 1
  return cellShares(
    design,
    sharesOf(
      design.logits.map((logit) => logit / divisor),
      design.shaping
    )
  )
}

/** The fields of a request of a design. */
export const fieldsOf = ({ field, shaping }: Design): Omit<Fields, "max_tokens"> => ({
  temperature: shaping.temperature,
  top_p: shaping.topP,
  top_k: shaping.topK === 0 ? -1 : shaping.topK,
  min_p: shaping.minP,
  repetition_penalty: field === "repetition_penalty" ? repetitionPenalty : 1
})
