export interface FetchProgress {
  /** Bytes that are there. */
  readonly bytes: number
  readonly totalBytes: number
  /** Whether another download brings the same commit, and this one waits for it. */
  readonly waiting: boolean
}
