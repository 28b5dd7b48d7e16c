import type { Dialect, ReportedUsage } from "./dialects/Dialect.ts"

/** The part of an answer received so far, for its record and its checkpoints. */
export class Progress {
  /** Frames with content from the engine: a lower bound of the output if the engine reported no usage. */
  contentFrames = 0
  finishReason: string | null = null
  /** `performance.now()` when the first content was sent to the caller. */
  firstContentAt: number | null = null
  readonly #usageOf: Dialect["usageOf"]
  #usage: ReportedUsage | null = null
  #unread: string | null = null

  readonly #observe: ((seconds: number) => void) | undefined
  #lastContentAt = 0

  /** `observe` gets the time between one content and the next. */
  constructor(usageOf: Dialect["usageOf"], observe?: (seconds: number) => void) {
    this.#usageOf = usageOf
    this.#observe = observe
  }

  /** Content was sent to the caller at `now`, which is `performance.now()`. */
  recordContent(now: number) {
    if (this.firstContentAt === null) this.firstContentAt = now
    else this.#observe?.((now - this.#lastContentAt) / 1_000)
    this.#lastContentAt = now
  }

  /** Stores the engine's latest usage as JSON. It is parsed on demand, because most values are soon replaced. */
  storeUsage(json: string) {
    this.#unread = json
  }

  /** Whether the engine has reported any usage. With several prompts, it may cover only one of them. */
  get hasUsage(): boolean {
    return this.#unread !== null || this.#usage !== null
  }

  /** The last usage that the engine reported; null if it reported none. */
  get reportedUsage(): ReportedUsage | null {
    if (this.#unread !== null) {
      this.#usage = this.#usageOf(this.#unread) ?? this.#usage
      this.#unread = null
    }
    return this.#usage
  }

  /**
   * Whether the delivered frames exceed the reported output. Some engines report the output only at the end, or of only
   * one of several choices.
   */
  get countsDelivered(): boolean {
    return this.finishReason === null && this.contentFrames > (this.reportedUsage?.output_tokens ?? 0)
  }

  /** The best known usage. */
  get usage(): ReportedUsage {
    const reported = this.reportedUsage ?? { input_tokens: 0, output_tokens: this.contentFrames, cache_read_tokens: null, cache_write_tokens: null }
    return this.countsDelivered ? { ...reported, output_tokens: this.contentFrames } : reported
  }
}
