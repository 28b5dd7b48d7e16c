/** Marsaglia's xorshift: numbers of 32 bits from a seed. */
export const words = (seed: number) => {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}
