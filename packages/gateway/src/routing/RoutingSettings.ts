/** Settings of routing. Times are in milliseconds. */
export interface RoutingSettings {
  /** Concurrent requests for an engine without a measured concurrency. */
  readonly engineConcurrency: number
  /** Longest wait if the model has engines. */
  readonly queueWaitMillis: number
  /** Longest wait if the model has no engine. */
  readonly coldWaitMillis: number
  /** Requests that may wait for a model without an engine. */
  readonly coldWaiting: number
  /** Interval between two readings of an engine's metrics, and between two health checks. */
  readonly scrapeIntervalMillis: number
  readonly healthIntervalMillis: number
  /** Silence of an engine with work after which it is ejected. */
  readonly hangMillis: number
}
