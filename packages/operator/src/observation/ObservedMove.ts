import type { RevisionId } from "@seatrial/domain"

/** Requests of one revision during a move. */
export interface AnswerCounts {
  readonly answered: number
  /** Attempts that failed because of the engine. */
  readonly failed: number
}

export const noAnswers: AnswerCounts = { answered: 0, failed: 0 }

export const addAnswers = (one: AnswerCounts, other: AnswerCounts): AnswerCounts => ({
  answered: one.answered + other.answered,
  failed: one.failed + other.failed
})

/** A move of the model to the run's revision, from which it may return to the earlier one. */
export interface ObservedMove {
  /** The earlier revision, which still answers requests. */
  readonly to: RevisionId
  /** The requests of the run's revision and of the earlier one, since the move began. */
  readonly own: AnswerCounts
  readonly earlier: AnswerCounts
  /** How much likelier the failures are if the run's revision fails more often: a power of ten. See `comparison.ts`. */
  readonly evidence: number
  /**
   * For how long engines of the run's revision had a node without becoming ready, since the last one became ready,
   * milliseconds. Waiting for GPUs does not count.
   */
  readonly startingMillis: number
}
