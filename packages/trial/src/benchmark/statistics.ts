/** Fewest samples for which a quantile has a one-sided 95% bound: n >= ln 0.05 / ln q. */
const fewest = { 0.5: 5, 0.9: 29 } as const

/** The quantile by nearest rank, rounded to microseconds; null where the sample is too small to bound it. */
export const quantile = (values: ReadonlyArray<number>, q: keyof typeof fewest): number | null => {
  if (values.length < fewest[q]) return null
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]
  return value === undefined ? null : Math.round(value * 1_000) / 1_000
}

/** Tokens that arrived at times in `[from, to)`. */
export const weightWithin = (samples: ReadonlyArray<{ readonly arrivals: ReadonlyArray<number>; readonly tokens: number }>, from: number, to: number): number =>
  samples.reduce((sum, { arrivals, tokens }) => {
    const inside = arrivals.filter((at) => at >= from && at < to).length
    // Several tokens may come in one chunk; each chunk of an answer counts for its share.
    return arrivals.length === 0 ? sum : sum + (inside * tokens) / arrivals.length
  }, 0)
