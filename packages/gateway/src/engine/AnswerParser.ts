/** Bytes of the largest head, and of the largest line between chunks. */
const maxHead = 65_536
const maxLine = 4_096

const headEnd = Buffer.from("\r\n\r\n")
const empty = Buffer.alloc(0)
const lineFeed = 10

/** What follows next. `rest`: the body lasts until the connection ends. */
type State = "head" | "length" | "rest" | "size" | "chunk" | "chunkEnd" | "trailers" | "over"

/** Where a message is, as its bytes come in: HTTP/1.1, one answer after the other. */
export class AnswerParser {
  /** Of the answer whose head was read last. */
  status = 0
  /** Whether another request may follow on the same connection. */
  keepAlive = true
  #state: State = "head"
  #left = 0
  #held: Buffer = empty

  /** Whether the head is still to come. */
  get awaitsHead(): boolean {
    return this.#state === "head"
  }

  /** Whether the body has come to its end, and nothing but its end. */
  get over(): boolean {
    return this.#state === "over"
  }

  /** Whether the end of the connection ends the body. */
  get endsWithConnection(): boolean {
    return this.#state === "rest"
  }

  /** Ready for the next answer. */
  reset() {
    this.#state = "head"
    this.#held = empty
  }

  /** The part of the body in these bytes; false where they are not HTTP, or more than one answer. */
  push(bytes: Buffer): Buffer | false {
    let from = 0
    let first: Buffer = empty
    let more: Array<Buffer> | null = null
    while (from < bytes.length) {
      switch (this.#state) {
        case "head": {
          const held = this.#held.length === 0 ? bytes.subarray(from) : Buffer.concat([this.#held, bytes.subarray(from)])
          const end = held.indexOf(headEnd)
          if (end === -1) {
            this.#held = held
            return held.length > maxHead ? false : first
          }
          this.#held = empty
          if (!this.#readHead(held.toString("latin1", 0, end))) return false
          from = bytes.length - (held.length - end - headEnd.length)
          break
        }
        case "length":
        case "rest":
        case "chunk": {
          const until = this.#state === "rest" ? bytes.length : Math.min(bytes.length, from + this.#left)
          const part = bytes.subarray(from, until)
          if (first.length === 0) first = part
          else if (more === null) more = [first, part]
          else more.push(part)
          this.#left -= until - from
          from = until
          if (this.#left === 0 && this.#state !== "rest") this.#state = this.#state === "length" ? "over" : "chunkEnd"
          break
        }
        case "over":
          return false
        default: {
          const end = bytes.indexOf(lineFeed, from)
          const line = this.#held.toString("latin1") + bytes.toString("latin1", from, end === -1 ? bytes.length : end)
          if (line.length > maxLine) return false
          if (end === -1) {
            this.#held = Buffer.from(line, "latin1")
            from = bytes.length
            break
          }
          this.#held = empty
          from = end + 1
          if (!this.#readLine(line.endsWith("\r") ? line.slice(0, -1) : line)) return false
        }
      }
    }
    return more === null ? first : Buffer.concat(more)
  }

  /** A line around a chunk. */
  #readLine(line: string): boolean {
    if (this.#state === "chunkEnd") this.#state = "size"
    else if (this.#state === "trailers") this.#state = line === "" ? "over" : "trailers"
    else {
      const size = /^([\da-f]{1,8})[ \t]*(?:;.*)?$/i.exec(line)?.[1]
      if (size === undefined) return false
      this.#left = Number.parseInt(size, 16)
      this.#state = this.#left === 0 ? "trailers" : "chunk"
      return true
    }
    return line === "" || this.#state === "trailers"
  }

  #readHead(text: string): boolean {
    const [start = "", ...lines] = text.split("\r\n")
    const found = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(start)
    if (found === null) return false
    this.status = Number(found[2])
    // One that only says that another one follows.
    if (this.status >= 100 && this.status < 200) return this.status !== 101
    let length: string | null = null
    let encoding: string | null = null
    let connection = ""
    for (const line of lines) {
      const colon = line.indexOf(":")
      if (colon === -1) return false
      const name = line.slice(0, colon).toLowerCase()
      if (name === "content-length") {
        const value = line.slice(colon + 1).trim()
        if (!/^\d{1,15}$/.test(value) || (length !== null && length !== value)) return false
        length = value
      } else if (name === "transfer-encoding") {
        encoding =
          (encoding === null ? "" : `${encoding},`) +
          line
            .slice(colon + 1)
            .trim()
            .toLowerCase()
      } else if (name === "connection") connection += `,${line.slice(colon + 1).toLowerCase()}`
    }
    if (encoding !== null && encoding !== "chunked") return false
    const tokens = connection === "" ? [] : connection.split(",").map((token) => token.trim())
    this.keepAlive = !tokens.includes("close") && (found[1] === "1" || tokens.includes("keep-alive"))
    if (this.status === 204 || this.status === 304) this.#state = "over"
    else if (encoding !== null) this.#state = "size"
    else if (length !== null) {
      this.#left = Number(length)
      this.#state = this.#left === 0 ? "over" : "length"
    } else {
      this.keepAlive = false
      this.#state = "rest"
    }
    return true
  }
}
