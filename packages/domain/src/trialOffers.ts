/** What an engine offers to those who try it, beside what it serves: how its trial is spoken with it. */
export interface TrialOffers {
  /** Fields with which a completion tells the log-probabilities of its prompt's tokens. */
  readonly scoring: Readonly<Record<string, unknown>>
  /** Whether a prefix that was computed is used again and told of in the usage, as it is started. */
  readonly prefixCache: boolean
  /** Whether the same seed gives the same answer, as it is started. */
  readonly seeds: boolean
  /** Tokens at the end of its context that no answer fills, however much is asked for; absent: 0. */
  readonly unfilled?: number
  /** Where it tells which commit's weights it was given, as it is started; absent where it does not. */
  readonly weightVersion?: string
}
