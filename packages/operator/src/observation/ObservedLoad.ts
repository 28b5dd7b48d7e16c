/** The requests of a model that run or wait, at one time. */
export interface LoadSample {
  /** Unix milliseconds. */
  readonly at: number
  readonly requests: number
}

/** The load of a model whose number of engines the autoscaler sets, as gateways reported it. */
export interface ObservedLoad {
  /** When the number of engines changed last, Unix milliseconds; not before this operator took over. */
  readonly changedAt: number
  /** Since when the load is observed without a gap, Unix milliseconds. */
  readonly since: number
  /** Oldest first. A sample may be absent if a newer one is not lower, because only the highest ones count. */
  readonly samples: ReadonlyArray<LoadSample>
}

/** Samples are kept for the longest time that a decision may look back. */
export const longestWindowMillis = 1_800_000

/** Adds a sample and removes those that no decision can need any more. */
export const addSample = (samples: ReadonlyArray<LoadSample>, added: LoadSample): ReadonlyArray<LoadSample> => [
  ...samples.filter(({ at, requests }) => requests > added.requests && added.at - at <= longestWindowMillis),
  added
]
