import { drawer } from "../../promptTokens.ts"

/**
 * Words with characters that engines break: with combining characters, with the same characters in their composed form,
 * and with emoji of several code points, joined and not. Each begins with two plain letters.
 */
export const characterWords: ReadonlyArray<ReadonlyArray<string>> = [
  ["cafe\u0301", "nai\u0308ve", "pro\u0302\u0323ti", "stro\u0332\u0308m"],
  ["caf\u00e9", "na\u00efve", "fa\u00e7ade", "st\u00e5l"],
  ["crew👩‍🚀", "family👨‍👩‍👧‍👦", "flag🏳️‍🌈"],
  ["ship🚢⚓️", "yes👍🏽", "keys1️⃣2️⃣"]
]

/** Two words of each kind, which the seed determines. */
export const drawnWords = (seed: number, kinds: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const draw = drawer(seed)
  return kinds.flatMap((words) => {
    const left = [...words]
    return Array.from({ length: Math.min(2, words.length) }, () => left.splice(draw(left.length), 1)[0] ?? "")
  })
}
