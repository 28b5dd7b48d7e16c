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

/** Milliseconds that the start of an engine takes, as far as anything tells. */
const usualStart = ({ lastStart, startSeconds }: Omit<Starting, "passed">): number => lastStart ?? (startSeconds === null ? unknownStart : startSeconds * 1_000)

/**
 * When to ask again for a model that starts, whole seconds from 1 to 60: what its last start took, or what was measured, less what has passed. One that is late comes the later
 * the later it is already (a quarter of that on top), so that who asks for one that never comes asks ever more rarely.
 */
export const secondsUntilStarted = (starting: Starting): number => {
  const left = usualStart(starting) - starting.passed
  return Math.min(60, Math.max(1, Math.ceil((left > 0 ? left : -left / 4) / 1_000)))
}

/** When to ask again for a model whose engine ends whenever it starts: when its next start may have come to its end, in whole seconds from 1 to 60. */
export const secondsUntilNextStart = ({ lastStart, startSeconds }: Omit<Starting, "passed">, left: number): number =>
  Math.min(60, Math.max(1, Math.ceil((Math.max(0, left) + usualStart({ lastStart, startSeconds })) / 1_000)))

/** Whether a start takes so long that it may have failed, and do so each time: three times as long as usual and a minute. Then what it usually takes, in seconds; else null. */
export const overdueStart = (starting: Starting): number | null => {
  const usual = usualStart(starting)
  return starting.passed > 3 * usual + 60_000 ? Math.ceil(usual / 1_000) : null
}
