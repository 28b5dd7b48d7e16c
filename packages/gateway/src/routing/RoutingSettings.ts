/** What routing goes by. Times in milliseconds. */
export interface RoutingSettings {
  /** Requests at once for an engine of which nothing was measured. */
  readonly engineConcurrency: number
  /** Longest wait where engines are there. */
  readonly queueWait: number
  /** Longest wait where none is. */
  readonly coldWait: number
  /** Requests for a model that may wait where none is. */
  readonly coldWaiting: number
  /** Pauses between two looks at an engine's metrics, and at its health. */
  readonly scrape: number
  readonly health: number
  /** Silence of an engine with work after which others are asked. */
  readonly hang: number
}
