/** Rounds milliseconds to three decimals. */
export const round = (milliseconds: number): number => Math.round(milliseconds * 1_000) / 1_000

/** Milliseconds since `startedAt`, which is `performance.now()`. */
export const elapsed = (startedAt: number): number => round(performance.now() - startedAt)
