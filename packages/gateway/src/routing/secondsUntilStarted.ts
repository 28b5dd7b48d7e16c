/** Milliseconds assumed for a start without any measurement. */
const unknownStart = 30_000

export interface Starting {
  /** Milliseconds of the last start that this gateway saw, from the first waiting request on; null if it saw none. */
  readonly lastStart: number | null
  /** Measured seconds of the engine's start; null if unknown. */
  readonly startSeconds: number | null
  /** Milliseconds for which requests have waited for this start. */
  readonly passed: number
}

/** Expected milliseconds of a start, from the best available measurement. */
const usualStart = ({ lastStart, startSeconds }: Omit<Starting, "passed">): number => lastStart ?? (startSeconds === null ? unknownStart : startSeconds * 1_000)

/**
 * `Retry-After` for a model that starts, in seconds from 1 to 60: the expected time of the start less the time that has
 * passed. The longer a start is overdue, the longer it becomes (a quarter of the delay), so that callers of a model
 * that never starts retry less and less often.
 */
export const secondsUntilStarted = (starting: Starting): number => {
  const left = usualStart(starting) - starting.passed
  return Math.min(60, Math.max(1, Math.ceil((left > 0 ? left : -left / 4) / 1_000)))
}

/**
 * `Retry-After` for a model whose engine fails during its start, in seconds from 1 to 60: the time until the next start
 * should be complete.
 */
export const secondsUntilNextStart = ({ lastStart, startSeconds }: Omit<Starting, "passed">, left: number): number =>
  Math.min(60, Math.max(1, Math.ceil((Math.max(0, left) + usualStart({ lastStart, startSeconds })) / 1_000)))

/**
 * The usual seconds of a start if this one takes so long that it may be failing: more than three times the usual time
 * plus one minute. Else null.
 */
export const overdueStart = (starting: Starting): number | null => {
  const usual = usualStart(starting)
  return starting.passed > 3 * usual + 60_000 ? Math.ceil(usual / 1_000) : null
}
