/** How one request of the benchmark went. Times are milliseconds of one monotonic clock. */
export interface RequestRecord {
  readonly stream: number
  readonly sentAt: number
  /** When each chunk with content, reasoning or a tool call came. */
  readonly arrivals: ReadonlyArray<number>
  /** `answered`: in full, with as many tokens as were asked for. `unfinished`: under way when time was over. Else the kind of its error. */
  readonly outcome: string
  /** Output tokens by the engine's own count; 0 where it told none. */
  readonly tokens: number
}

/** What one thread of the load generator saw of a step. */
export interface ThreadReport {
  readonly records: ReadonlyArray<RequestRecord>
  /** When each of its streams first found no further request; fewer than its streams while the step goes on. */
  readonly idleAt: ReadonlyArray<number>
  /** 99th percentile of the delay of the thread's event loop so far, milliseconds. */
  readonly delayP99: number
}
