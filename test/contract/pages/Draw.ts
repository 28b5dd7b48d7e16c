/** A seeded random generator (mulberry32, Tommy Ettinger): the same seed gives the same draws. */
export interface Draw {
  /** An integer in `0..end` (exclusive). */
  readonly below: (end: number) => number
  readonly chance: (probability: number) => boolean
  /** One of the values, with equal probability. */
  readonly of: <A>(values: readonly [A, ...Array<A>]) => A
}

export const makeDraw = (seed: number): Draw => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  return { below, chance: (probability) => next() < probability, of: (values) => values[below(values.length)] ?? values[0] }
}
