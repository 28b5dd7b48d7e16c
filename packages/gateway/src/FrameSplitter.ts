/**
 * Splits a byte stream into server-sent events, each including its blank line. Text is Latin-1, one character per byte,
 * so that the engine's bytes pass through unchanged. Buffers at most `limit` bytes of an incomplete event.
 */
export class FrameSplitter {
  #rest = ""
  readonly #limit: number

  constructor(limit = 4 * 1024 * 1024) {
    this.#limit = limit
  }

  /** The events that `chunk` completes; null if an event exceeds the limit. */
  push(chunk: Buffer): ReadonlyArray<string> | null {
    // The previous chunk may end within a blank line.
    let from = Math.max(0, this.#rest.length - 3)
    let text = this.#rest + chunk.toString("latin1")
    if (text.includes("\r")) {
      text = text.replaceAll("\r\n", "\n")
      from = 0
    }
    const frames: Array<string> = []
    let start = 0
    for (let end = text.indexOf("\n\n", from); end !== -1; end = text.indexOf("\n\n", start)) {
      frames.push(text.slice(start, end + 2))
      start = end + 2
    }
    this.#rest = text.slice(start)
    return this.#rest.length > this.#limit ? null : frames
  }
}
