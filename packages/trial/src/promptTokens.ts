/**
 * Draws whole numbers below a bound, always the same ones for a seed. Two rounds of SplitMix's mixing: neighboring seeds
 * are uncorrelated, and all bits of a draw are usable.
 */
export const drawer = (seed: number): ((bound: number) => number) => {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) % bound
  }
}

/**
 * Token ids from the middle of the vocabulary, where tokenizers have no special tokens. The ids depend only on the
 * seed. Different seeds differ from the first token on, so that no prefix is shared.
 */
export const promptTokens = (vocabSize: number, length: number, seed: number): ReadonlyArray<number> => {
  const low = Math.floor(vocabSize / 4)
  const span = Math.max(1, Math.floor(vocabSize / 2))
  const draw = drawer(seed)
  return Array.from({ length }, () => low + draw(span))
}
