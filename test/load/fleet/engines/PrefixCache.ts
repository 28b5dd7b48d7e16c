/** The prompts that an engine computed, up to a number of tokens. It drops the least recently used first. */
export class PrefixCache {
  readonly #size: number
  readonly #prompts = new Map<string, number>()
  #held = 0

  /** `size`: tokens that it holds. */
  constructor(size: number) {
    this.#size = size
  }

  /**
   * Computes a prompt of this many tokens. Prompts with the same start are the turns of a conversation, each of which
   * continues the one before it. Returns how many tokens were there already.
   */
  use(start: string, tokens: number): number {
    const known = this.#prompts.get(start) ?? 0
    this.#prompts.delete(start)
    this.#prompts.set(start, Math.max(known, tokens))
    this.#held += Math.max(0, tokens - known)
    for (const [oldest, held] of this.#prompts) {
      if (this.#held <= this.#size) break
      this.#prompts.delete(oldest)
      this.#held -= held
    }
    return Math.min(known, tokens)
  }
}
