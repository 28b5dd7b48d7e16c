import type { Reading } from "./readAnswer.ts"

/**
 * The first step at which another answer to the same request has another token, if the likeliest one was ahead by at
 * least `sureBy` nats; null if there is none, or if the engine does not report ids.
 */
export const changedAt = ({ ids, tops }: Reading, other: Reading, sureBy: number): number | null => {
  const at = ids?.findIndex((id, step) => id !== other.ids?.[step]) ?? -1
  const [best = 0, second = Number.NEGATIVE_INFINITY] = (tops?.[at] ?? []).toSorted((a, b) => b - a)
  return other.ids === null || at === -1 || best - second < sureBy ? null : at
}
