import { drawer } from "../promptTokens.ts"
import { seedOf } from "./saltOf.ts"

const letters = "BCDFGHJKLMNPQRSTVWXZ"

/** Different codes, which the seed determines. `use`: what they are for. */
export const drawnCodes = (seed: number, use: string, count: number): ReadonlyArray<string> => {
  const draw = drawer(seedOf(seed, use))
  const letter = () => letters[draw(letters.length)] ?? ""
  const codes = new Set<string>()
  while (codes.size < count) codes.add(`${letter()}${draw(10)}${letter()}${letter()}-${1_000 + draw(9_000)}`)
  return [...codes]
}

/** A request that ends by itself with a short answer, and that only this trial has. */
export const repeatCode = (seed: number, use: string): string => `Repeat this code: ${drawnCodes(seed, use, 1)[0]}`
