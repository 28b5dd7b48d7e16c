/** Tokens per second of one answer until the first answer is measured: an engine on one GPU writes about as fast for one of several callers. */
const defaultPace = 30

/** Tokens over which the pace is averaged. */
const windowTokens = 20_000

/**
 * How fast the engines of a model write an answer, measured from answers that are not streamed: no caller can slow down how they are read. An answer weighs as much as it has tokens, so
 * that short answers to long prompts, which look slow, change little.
 */
export class DecodePace {
  #weight = 0
  #weightedPace = 0

  /** An engine wrote `tokens` of one answer in so many milliseconds, its prompt included. */
  observe(tokens: number, millis: number): void {
    if (tokens <= 0 || millis <= 0) return
    const rest = Math.max(0, 1 - tokens / windowTokens)
    this.#weight = this.#weight * rest + tokens
    this.#weightedPace = this.#weightedPace * rest + tokens * (tokens / millis)
  }

  /** Tokens that an engine writes of one answer in so many milliseconds. */
  estimate(millis: number): number {
    const tokensPerMilli = this.#weight === 0 ? defaultPace / 1_000 : this.#weightedPace / this.#weight
    return Math.floor(Math.max(0, millis) * tokensPerMilli)
  }
}
