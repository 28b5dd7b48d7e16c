import { Schema } from "effect"

/** Money on the wire: exact micro-dollars as a string of digits. Internally it is a `bigint`. */
export const Micros = Schema.String.check(Schema.isPattern(/^\d+$/u))

/** Micro-dollars per million tokens, one rate for each token class, as digit strings. */
export const Prices = Schema.Struct({
  input_micros_per_mtok: Micros,
  output_micros_per_mtok: Micros,
  cache_read_micros_per_mtok: Micros,
  cache_write_micros_per_mtok: Micros
})
export type Prices = typeof Prices.Type

export const zeroPrices: Prices = {
  input_micros_per_mtok: "0",
  output_micros_per_mtok: "0",
  cache_read_micros_per_mtok: "0",
  cache_write_micros_per_mtok: "0"
}

/** Converts micro-dollars (a string of digits) to dollars: exact up to 15 digits, which is a billion dollars. */
export const microsToDollars = (micros: string): number => {
  const digits = micros.padStart(7, "0")
  return Number(`${digits.slice(0, -6)}.${digits.slice(-6)}`)
}

/**
 * Tokens of one request in its four disjoint classes; null if the engine does not report a class, which then costs
 * nothing.
 */
export const Usage = Schema.Struct({
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  cache_read_tokens: Schema.NullOr(Schema.Int),
  cache_write_tokens: Schema.NullOr(Schema.Int)
})
export type Usage = typeof Usage.Type

/** `numerator / denominator` for non-negative numbers, rounded half up. */
export const divideHalfUp = (numerator: bigint, denominator: bigint): bigint => (2n * numerator + denominator) / (2n * denominator)

/**
 * Cost in micro-dollars: the sum over the token classes of tokens x rate, per million tokens, rounded half up once at
 * the end.
 */
export const costMicros = (usage: Usage, prices: Prices): bigint => {
  const part = (tokens: number | null, rate: string) => BigInt(tokens ?? 0) * BigInt(rate)
  const total =
    part(usage.input_tokens, prices.input_micros_per_mtok) +
    part(usage.output_tokens, prices.output_micros_per_mtok) +
    part(usage.cache_read_tokens, prices.cache_read_micros_per_mtok) +
    part(usage.cache_write_tokens, prices.cache_write_micros_per_mtok)
  return divideHalfUp(total, 1_000_000n)
}
