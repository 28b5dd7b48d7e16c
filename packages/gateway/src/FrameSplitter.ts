const noFrames: ReadonlyArray<string> = []

/**
 * Splits a byte stream into server-sent events, each including its blank line. Text is Latin-1, one character per byte,
 * so that the engine's bytes pass through unchanged. Buffers at most `limit` bytes of an incomplete event.
 */
export class FrameSplitter {
  /** The pieces of the incomplete event. They are joined only once it is complete, so that each byte is copied once. */
  #pieces: Array<string> = []
  #length = 0
  /** Whether the last byte was a carriage return, which is held back because a line feed may follow. */
  #endsWithReturn = false
  readonly #limit: number

  constructor(limit = 4 * 1024 * 1024) {
    this.#limit = limit
  }

  /** The bytes of the incomplete event. */
  get length(): number {
    return this.#length
  }

  /** The events that `chunk` completes; null if an event exceeds the limit. */
  push(chunk: Buffer): ReadonlyArray<string> | null {
    const piece = this.#withLineFeeds(chunk.toString("latin1"))
    if (!this.#completes(piece)) return this.#keep(piece)
    const text = this.#pieces.length === 0 ? piece : this.#pieces.join("") + piece
    // The last piece may end within a blank line.
    const from = Math.max(0, this.#length - 1)
    const frames: Array<string> = []
    let start = 0
    for (let end = text.indexOf("\n\n", from); end !== -1; end = text.indexOf("\n\n", start)) {
      frames.push(text.slice(start, end + 2))
      start = end + 2
    }
    this.#pieces = []
    this.#length = 0
    return this.#keep(text.slice(start)) === null ? null : frames
  }

  /** Replaces the line ends of some engines. */
  #withLineFeeds(text: string): string {
    const complete = this.#endsWithReturn ? `\r${text}` : text
    this.#endsWithReturn = false
    if (!complete.includes("\r")) return complete
    this.#endsWithReturn = complete.endsWith("\r")
    return (this.#endsWithReturn ? complete.slice(0, -1) : complete).replaceAll("\r\n", "\n")
  }

  /** Whether an event ends in this piece, or with its first byte. */
  #completes(piece: string): boolean {
    return piece.includes("\n\n") || (piece.startsWith("\n") && this.#pieces.at(-1)?.endsWith("\n") === true)
  }

  /** Keeps a piece of an incomplete event. Null if it exceeds the limit. */
  #keep(piece: string): ReadonlyArray<string> | null {
    if (piece !== "") this.#pieces.push(piece)
    this.#length += piece.length
    return this.#length > this.#limit ? null : noFrames
  }
}
