/**
 * Cuts a byte stream into server-sent frames, each with its blank line. Text is Latin-1, one character a byte, so that whatever the engine sent goes out as it came.
 * Holds at most `limit` bytes of an unfinished frame.
 */
export class FrameSplitter {
  #rest = ""
  readonly #limit: number

  constructor(limit = 4 * 1024 * 1024) {
    this.#limit = limit
  }

  /** The frames that `chunk` completes; null where a frame grows beyond the limit. */
  push(chunk: Buffer): ReadonlyArray<string> | null {
    // A blank line may have begun in what came before.
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
