/** The result of one request of the benchmark. Times are milliseconds of one monotonic clock. */
export interface RequestRecord {
  readonly stream: number
  readonly sentAt: number
  /** The time of each chunk with content, reasoning or a tool call. */
  readonly arrivals: ReadonlyArray<number>
  /**
   * `answered`: complete, with the requested number of tokens. `unfinished`: still running at the end of the step.
   * Otherwise the kind of error.
   */
  readonly outcome: string
  /** Output tokens as counted by the engine; 0 if it reported none. */
  readonly tokens: number
}

/** The results of one thread of the load generator for a step. */
export interface ThreadReport {
  readonly records: ReadonlyArray<RequestRecord>
  /** When each stream first found no further request. Has fewer entries than streams while the step runs. */
  readonly idleAt: ReadonlyArray<number>
  /** 99th percentile of the event loop delay of the thread so far, in milliseconds. */
  readonly delayP99: number
}
