export interface FetchProgress {
  /** Bytes that have arrived. */
  readonly bytes: number
  readonly totalBytes: number
  /** Whether this download waits for another download of the same commit. */
  readonly waiting: boolean
}
