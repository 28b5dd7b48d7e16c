/** Bytes of a head, or of what follows the last chunk. */
const maxHead = 16_384
/** Bytes of the line before a chunk, with what it may say besides the size. */
const maxSizeLine = 1_024

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: |$)/
const carriageReturn = 13
const lineFeed = 10
const semicolon = 59

/** The value of a hexadecimal digit; -1 for any other character. */
const digitOf = (byte: number): number => {
  if (byte >= 48 && byte <= 57) return byte - 48
  const letter = byte | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

/** What is told of an answer as it is read. */
export interface ResponseListener {
  readonly head: (status: number) => void
  /** Part of the body, which stands in these bytes only until the call returns. */
  readonly data: (bytes: Buffer) => void
}

/**
 * Reads one answer of HTTP/1.1 as it comes, split anywhere. It is strict: what can be read in two ways is no answer, for then the next one on the connection could be
 * another's.
 */
export class ResponseReader {
  /** Whether all of the answer was read. */
  done = false
  /** Milliseconds for which the other end keeps the connection, as it says; 0 where it closes it, null where it does not say. */
  keeps: number | null = null
  readonly #listener: ResponseListener
  #at: "head" | "fixed" | "untilClosed" | "size" | "extension" | "sizeEnd" | "chunk" | "chunkEnd" | "chunkFeed" | "trailer" = "head"
  #text = ""
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0
  /** Characters of the line before a chunk so far. */
  #line = 0

  constructor(listener: ResponseListener) {
    this.#listener = listener
  }

  /** Reads on; false where it is no answer, or more than one. */
  push(bytes: Buffer): boolean {
    let from = 0
    while (from < bytes.length) {
      if (this.done) return false
      const next = this.#step(bytes, from)
      if (next === -1) return false
      from = next
    }
    return true
  }

  /** Nothing more comes; whether the answer is whole. */
  close(): boolean {
    if (this.#at === "untilClosed") this.done = true
    return this.done
  }

  /** Where to read on; -1 where it is no answer. */
  #step(bytes: Buffer, from: number): number {
    switch (this.#at) {
      case "head":
        return this.#untilBlank(bytes, from, (head) => this.#readHead(head))
      case "trailer":
        return this.#readTrailer(bytes, from)
      case "untilClosed":
        this.#listener.data(from === 0 ? bytes : bytes.subarray(from))
        return bytes.length
      case "fixed":
      case "chunk":
        return this.#readBody(bytes, from)
      case "chunkEnd":
        this.#at = "chunkFeed"
        return bytes[from] === carriageReturn ? from + 1 : -1
      case "chunkFeed":
        this.#beginChunk()
        return bytes[from] === lineFeed ? from + 1 : -1
      default:
        return this.#readSize(bytes, from)
    }
  }

  /** Gathers text up to a blank line, without it. */
  #untilBlank(bytes: Buffer, from: number, read: (text: string) => boolean): number {
    const before = this.#text.length
    const text = this.#text + bytes.toString("latin1", from, Math.min(bytes.length, from + maxHead + 1 - before))
    const end = text.indexOf("\r\n\r\n", Math.max(0, before - 3))
    if (end === -1) {
      this.#text = text
      return text.length > maxHead ? -1 : bytes.length
    }
    this.#text = ""
    return read(text.slice(0, end)) ? from + end + 4 - before : -1
  }

  #readHead(head: string): boolean {
    const lines = head.split("\r\n")
    const [, minor, code] = statusLine.exec(lines[0] ?? "") ?? []
    const status = Number(code)
    if (minor === undefined || status < 100 || status === 101) return false
    // What comes before the answer itself.
    if (status < 200) return true
    let length: number | null = null
    let chunked = false
    let keeps: number | null = minor === "1" ? null : 0
    for (let index = 1; index < lines.length; index++) {
      const line = lines[index] ?? ""
      const colon = line.indexOf(":")
      if (colon < 1) return false
      const name = line.slice(0, colon).toLowerCase()
      // A space before the colon, or a line that goes on, is read differently by different programs.
      if (name.includes(" ") || name.includes("\t")) return false
      if (name === "content-length") {
        const value = line.slice(colon + 1).trim()
        if (!/^\d{1,15}$/.test(value) || (length !== null && length !== Number(value))) return false
        length = Number(value)
      } else if (name === "transfer-encoding") {
        if (
          chunked ||
          line
            .slice(colon + 1)
            .trim()
            .toLowerCase() !== "chunked"
        )
          return false
        chunked = true
      } else if (name === "connection") {
        if (/(?:^|,)\s*close\s*(?:,|$)/i.test(line.slice(colon + 1))) keeps = 0
      } else if (name === "keep-alive") {
        const seconds = /(?:^|[\s,])timeout=(\d{1,9})/i.exec(line.slice(colon + 1))?.[1]
        if (seconds !== undefined && keeps === null) keeps = Number(seconds) * 1_000
      }
    }
    if (chunked && length !== null) return false
    const bodiless = status === 204 || status === 304
    this.keeps = keeps
    this.#left = length ?? 0
    if (bodiless || length === 0) this.done = true
    else if (chunked) this.#beginChunk()
    else if (length !== null) this.#at = "fixed"
    else {
      this.#at = "untilClosed"
      this.keeps = 0
    }
    this.#listener.head(status)
    return true
  }

  #readBody(bytes: Buffer, from: number): number {
    const end = Math.min(bytes.length, from + this.#left)
    this.#left -= end - from
    // Whoever hears of the last part may ask whether it was that.
    if (this.#left === 0 && this.#at === "fixed") this.done = true
    else if (this.#left === 0) this.#at = "chunkEnd"
    this.#listener.data(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end))
    return end
  }

  #beginChunk() {
    this.#at = "size"
    this.#left = 0
    this.#line = 0
  }

  #readSize(bytes: Buffer, start: number): number {
    for (let from = start; from < bytes.length; from++) {
      const byte = bytes[from] ?? 0
      if (this.#at === "sizeEnd") {
        if (byte !== lineFeed) return -1
        this.#at = this.#left === 0 ? "trailer" : "chunk"
        return from + 1
      }
      if (++this.#line > maxSizeLine) return -1
      if (byte === carriageReturn && this.#line > 1) this.#at = "sizeEnd"
      else if (byte === lineFeed) return -1
      else if (this.#at === "size") {
        const digit = digitOf(byte)
        if (digit !== -1) this.#left = this.#left * 16 + digit
        else if (byte === semicolon && this.#line > 1) this.#at = "extension"
        else return -1
        if (this.#left > 2 ** 48) return -1
      }
    }
    return bytes.length
  }

  /** What follows the last chunk: nothing of it matters, and mostly it is nothing. */
  #readTrailer(bytes: Buffer, from: number): number {
    if (this.#text === "") this.#text = "\r\n"
    return this.#untilBlank(bytes, from, () => {
      this.done = true
      return true
    })
  }
}
