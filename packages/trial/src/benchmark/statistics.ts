import type { Distribution } from "@seatrial/domain"

/** Rounded to microseconds. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

/** P(X <= k) for X binomial with n trials of probability p. */
const binomialAtMost = (k: number, n: number, p: number): number => {
  // In logarithms, since (1 - p)^n may underflow.
  let term = n * Math.log(1 - p)
  let sum = 0
  for (let i = 0; i <= k; i++) {
    sum += Math.exp(term)
    term += Math.log((n - i) / (i + 1)) + Math.log(p / (1 - p))
  }
  return Math.min(1, sum)
}

const confidence = 0.95

/** Above this size the normal approximation of the binomial gives the same ranks within one, at no cost. */
const mostExact = 1_000
const normalQuantile = 1.6449

/**
 * Ranks (from 1) of the order statistics that bound a quantile from below and from above, each with 95% confidence and
 * without an assumption on the distribution; null if the sample is too small for the upper one to exist: n < ln 0.05 /
 * ln q.
 */
export const boundRanks = (n: number, q: number): { readonly low: number; readonly high: number } | null => {
  if (1 - q ** n < confidence) return null
  if (n > mostExact) {
    const reach = normalQuantile * Math.sqrt(n * q * (1 - q))
    return { low: Math.max(1, Math.floor(n * q - reach)), high: Math.min(n, Math.ceil(n * q + reach) + 1) }
  }
  // Nearest to the quantile first: P(X_(r) >= quantile) = P(B <= r - 1), and P(X_(r) <= quantile) = P(B >= r).
  let high = Math.max(1, Math.ceil(q * n))
  while (high < n && binomialAtMost(high - 1, n, q) < confidence) high++
  let low = Math.max(1, Math.floor(q * n))
  while (low > 1 && 1 - binomialAtMost(low - 1, n, q) < confidence) low--
  return { low, high }
}

const percentile = (sorted: ReadonlyArray<number>, q: number): Distribution["p50"] => {
  const ranks = boundRanks(sorted.length, q)
  if (ranks === null) return null
  const at = (rank: number) => rounded(sorted[rank - 1] ?? Number.NaN)
  return { value: at(Math.max(1, Math.ceil(q * sorted.length))), low: at(ranks.low), high: at(ranks.high) }
}

/**
 * The size of a sample and its percentiles by nearest rank. A percentile is null if the sample is too small to bound
 * it.
 */
export const distributionOf = (values: ReadonlyArray<number>): Distribution => {
  const sorted = [...values].sort((a, b) => a - b)
  return { n: sorted.length, p50: percentile(sorted, 0.5), p90: percentile(sorted, 0.9), p95: percentile(sorted, 0.95), p99: percentile(sorted, 0.99) }
}

/** The median of any number of values; null without values. */
export const medianOf = (values: ReadonlyArray<number>): number | null =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length / 2) - 1)] ?? null

/** Mean and standard error; null with fewer than two values. */
export const meanOf = (values: ReadonlyArray<number>): { readonly mean: number; readonly standardError: number } | null => {
  const n = values.length
  if (n < 2) return null
  const mean = values.reduce((sum, value) => sum + value, 0) / n
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1)
  return { mean, standardError: Math.sqrt(variance / n) }
}
