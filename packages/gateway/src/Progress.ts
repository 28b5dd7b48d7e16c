import type { Dialect, ReportedUsage } from "./dialects/Dialect.ts"

/** What has been seen of an answer so far, for its record and its checkpoints. */
export class Progress {
  /** Frames with content that the engine sent: a lower bound of the output where it told no usage. */
  contentFrames = 0
  finishReason: string | null = null
  /** `performance.now()` when the first content was handed over. */
  firstContentAt: number | null = null
  readonly #usageOf: Dialect["usageOf"]
  #usage: ReportedUsage | null = null
  #unread: string | null = null

  readonly #observe: ((seconds: number) => void) | undefined
  #lastContentAt = 0

  /** `observe` is told the time between one content and the next. */
  constructor(usageOf: Dialect["usageOf"], observe?: (seconds: number) => void) {
    this.#usageOf = usageOf
    this.#observe = observe
  }

  /** Content was handed to the caller; `now` of `performance.now()`. */
  handedContent(now: number) {
    if (this.firstContentAt === null) this.firstContentAt = now
    else this.#observe?.((now - this.#lastContentAt) / 1_000)
    this.#lastContentAt = now
  }

  /** The engine's latest usage, as JSON: read only when somebody asks, for most is soon replaced. */
  sawUsage(json: string) {
    this.#unread = json
  }

  /** Whether the engine has reported any usage; of several prompts it may be that of one. */
  get hasUsage(): boolean {
    return this.#unread !== null || this.#usage !== null
  }

  /** Usage as the engine last told it; null where it told none. */
  get told(): ReportedUsage | null {
    if (this.#unread !== null) {
      this.#usage = this.#usageOf(this.#unread) ?? this.#usage
      this.#unread = null
    }
    return this.#usage
  }

  /** Whether the output is what was delivered, for the engine had not told of so much: some tell of the output at its end only, or of one choice of several. */
  get countsDelivered(): boolean {
    return this.finishReason === null && this.contentFrames > (this.told?.output_tokens ?? 0)
  }

  /** Usage as far as it is known. */
  get usage(): ReportedUsage {
    const told = this.told ?? { input_tokens: 0, output_tokens: this.contentFrames, cache_read_tokens: null, cache_write_tokens: null }
    return this.countsDelivered ? { ...told, output_tokens: this.contentFrames } : told
  }
}
