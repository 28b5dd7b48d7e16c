/** Milliseconds that a start takes where nothing tells. */
const unknownStart = 30_000

export interface Starting {
  /** Milliseconds that the last start took here, from the first request on; null where none was seen. */
  readonly lastStart: number | null
  /** Seconds that its engine took to start, as it was measured; null where nothing tells. */
  readonly startSeconds: number | null
  /** Milliseconds for which somebody has waited for it. */
  readonly passed: number
}

/**
 * When to ask again for a model that starts, whole seconds from 1 to 60: what its last start took, or what was measured, less what has passed. One that takes three times as
 * long and a minute may not come at all: then nobody should ask soon.
 */
export const secondsUntilStarted = ({ lastStart, passed, startSeconds }: Starting): number => {
  const whole = lastStart ?? (startSeconds === null ? unknownStart : startSeconds * 1_000)
  if (passed > 3 * whole + 60_000) return 60
  return Math.min(60, Math.max(1, Math.ceil((whole - passed) / 1_000)))
}
