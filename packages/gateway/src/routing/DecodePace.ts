/**
 * Tokens per second assumed for one answer before the first measurement: the speed of one of several concurrent answers
 * on one GPU.
 */
const defaultPace = 30

/** Tokens of a prompt that an engine reads in the time in which it generates one token of an answer, at least. */
const promptTokensPerToken = 100

/** Tokens over which the average is taken. */
const windowTokens = 20_000

/**
 * Measures how fast the engines of a model generate an answer. It uses only answers that are not streamed, because a
 * caller cannot slow those down by reading slowly. Answers are weighted by their tokens, so short answers to long
 * prompts, which look slow, have little influence.
 */
export class DecodePace {
  #weight = 0
  #weightedPace = 0

  /** An engine generated `tokens` tokens of one answer in `millis` milliseconds, including the time for the prompt. */
  observe(tokens: number, millis: number): void {
    if (tokens <= 0 || millis <= 0) return
    const rest = Math.max(0, 1 - tokens / windowTokens)
    this.#weight = this.#weight * rest + tokens
    this.#weightedPace = this.#weightedPace * rest + tokens * (tokens / millis)
  }

  /**
   * Tokens that an engine generates for one answer in `millis` milliseconds, in which it also reads a prompt of
   * `promptTokens` tokens.
   */
  estimate(millis: number, promptTokens: number): number {
    const tokensPerMilli = this.#weight === 0 ? defaultPace / 1_000 : this.#weightedPace / this.#weight
    return Math.floor(Math.max(0, millis * tokensPerMilli - promptTokens / promptTokensPerToken))
  }
}
