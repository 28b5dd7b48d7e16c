/** Bytes buffered for a slow reader of the log. Further lines are dropped and counted. */
const maxWaiting = 8 * 1024 * 1024

/** Milliseconds for which lines are collected before a write. */
const gather = 100

/** One line of the access log. It contains no request or answer text, no key and no image URL. */
export interface AccessLine {
  readonly request_id: string
  readonly trace_id?: string | undefined
  readonly endpoint: string
  readonly status: number
  readonly code: string | null
  readonly latency_ms: number
  readonly org_id?: string
  readonly model?: string
  readonly streamed?: boolean
  readonly ttft_ms?: number | null
  readonly finish_reason?: string | null
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_tokens?: number | null
  readonly cache_write_tokens?: number | null
}

/** The stream that lines are written to. */
export interface LogTarget {
  readonly write: (text: string) => unknown
  readonly writableLength: number
}

/** Writes one JSON line per request, in batches. */
export class AccessLog {
  readonly #target: LogTarget
  #lines = ""
  #dropped = 0
  #timer: NodeJS.Timeout | undefined

  constructor(target: LogTarget) {
    this.#target = target
  }

  write(line: AccessLine): void {
    if (this.#target.writableLength + this.#lines.length > maxWaiting) {
      this.#dropped++
      return
    }
    this.#lines += `${JSON.stringify({ timestamp: new Date().toISOString(), level: "INFO", message: "request", annotations: line })}\n`
    this.#timer ??= setTimeout(() => this.flush(), gather)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const dropped = this.#dropped
    this.#dropped = 0
    const lost =
      dropped === 0
        ? ""
        : `${JSON.stringify({ timestamp: new Date().toISOString(), level: "WARN", message: "access log lines were dropped", annotations: { dropped } })}\n`
    if (this.#lines !== "" || lost !== "") this.#target.write(this.#lines + lost)
    this.#lines = ""
  }
}
