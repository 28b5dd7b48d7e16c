/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export const drawsOf = (seed: number) => {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
  return {
    chance: (probability: number) => next() < probability,
    /** From `least` to below `most`. */
    between: (least: number, most: number) => least + next() * (most - least),
    integer: (least: number, most: number) => least + Math.floor(next() * (most - least + 1)),
    pick: <A>(all: readonly [A, ...ReadonlyArray<A>]): A => all[Math.floor(next() * all.length)] ?? all[0]
  }
}
export type Draw = ReturnType<typeof drawsOf>
