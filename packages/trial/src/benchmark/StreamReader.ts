import { dataOfLine, streamEnd } from "@seatrial/domain/eventStream"

const headEnd = Buffer.from("\r\n\r\n")
const newline = 10

type Parsed = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Parsed => typeof value === "object" && value !== null && !Array.isArray(value)

/** The object that the text is in JSON; null if it is none. */
const parse = (text: string): Parsed | null => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

const isText = (value: unknown) => typeof value === "string" && value !== ""

/** Whether a choice has content, reasoning or a part of a tool call. A chunk with only a role is not a token. */
const bringsTokens = (choice: unknown): boolean => {
  if (!isObject(choice)) return false
  if (isText(choice.text)) return true
  const { delta } = choice
  return (
    isObject(delta) &&
    (isText(delta.content) || isText(delta.reasoning) || isText(delta.reasoning_content) || (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0))
  )
}

/**
 * Reads one answer of an engine, an HTTP/1.1 response with server-sent events, as its bytes arrive. It decodes without
 * schemas, and its thread does not load Effect, because CPU time of the load generator distorts the measurement.
 */
export class StreamReader {
  /** The time of each chunk with tokens. */
  readonly arrivals: Array<number> = []
  usage: { readonly prompt: number; readonly completion: number } | null = null
  /** Whether the answer has ended. */
  over = false
  keepsConnection = true
  /** Whether the end of the connection ends the answer, and its last event came. */
  endsWithConnection = false
  #problem: string | null = null
  /** Whether the status is not 200, so that the body is not an event stream. */
  #isRefused = false
  #head: Buffer | null = Buffer.alloc(0)
  /** Remaining bytes of the body or of its chunk; null: until the connection closes. */
  #left: number | null = null
  #chunked = false
  /** The size line of a chunk while it is read. */
  #size: string | null = null
  #lastChunk = false
  #line = Buffer.alloc(0)
  #finished = false
  #done = false

  /** Why the answer is invalid; null if it is complete. */
  get problem(): string | null {
    if (this.#problem !== null) return this.#problem
    if (!this.#done) return "no_done"
    if (!this.#finished) return "no_finish_reason"
    return this.usage === null ? "no_usage" : null
  }

  take(bytes: Buffer, at: number): void {
    let body = bytes
    if (this.#head !== null) {
      const head: Buffer = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes])
      const end = head.indexOf(headEnd)
      if (end === -1) {
        this.#head = head
        return
      }
      this.#readHead(head.toString("latin1", 0, end))
      this.#head = null
      body = head.subarray(end + headEnd.length)
    }
    if (this.#chunked) this.#takeChunks(body, at)
    else this.#takePlain(body, at)
  }

  #readHead(head: string): void {
    const status = Number(head.slice(9, 12))
    this.#isRefused = status !== 200
    if (this.#isRefused) this.#problem = `http_${Number.isInteger(status) ? status : 0}`
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    this.keepsConnection = !/\r\nconnection: *close/i.test(head)
    if (this.#chunked) this.#size = ""
    else if (length !== undefined) this.#left = Number(length)
    else this.keepsConnection = false
    if (this.#left === 0) this.over = true
  }

  #takePlain(body: Buffer, at: number): void {
    this.#takeEvents(body, at)
    if (this.#left === null) {
      this.endsWithConnection = this.#done
      return
    }
    this.#left -= body.length
    if (this.#left <= 0) this.over = true
  }

  #takeChunks(body: Buffer, at: number): void {
    let from = 0
    while (from < body.length && !this.over) {
      if (this.#size !== null) {
        from = this.#takeSize(body, from, this.#size)
        continue
      }
      const piece = body.subarray(from, from + (this.#left ?? 0))
      this.#takeEvents(piece, at)
      from += piece.length
      this.#left = (this.#left ?? 0) - piece.length
      if (this.#left === 0) this.#size = ""
    }
  }

  /** Reads the rest of a size line after its `begun` part. Returns the place after it. */
  #takeSize(body: Buffer, from: number, begun: string): number {
    const end = body.indexOf(newline, from)
    this.#size = begun + body.toString("latin1", from, end === -1 ? body.length : end)
    if (end === -1) return body.length
    const line = this.#size.trim()
    this.#size = ""
    // The blank line after a chunk. After the last chunk it ends the answer.
    if (line === "") this.over = this.#lastChunk
    else if (!this.#lastChunk) this.#beginChunk(Number.parseInt(line, 16))
    return end + 1
  }

  #beginChunk(size: number): void {
    if (Number.isNaN(size)) {
      this.#problem ??= "unreadable"
      this.keepsConnection = false
      this.over = true
      return
    }
    this.#lastChunk = size === 0
    this.#left = size
    if (size > 0) this.#size = null
  }

  #takeEvents(bytes: Buffer, at: number): void {
    if (this.#isRefused) return
    let from = 0
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, from)) {
      const piece = bytes.subarray(from, end)
      const line = this.#line.length === 0 ? piece : Buffer.concat([this.#line, piece])
      if (this.#line.length > 0) this.#line = Buffer.alloc(0)
      this.#takeLine(line, at)
      from = end + 1
    }
    if (from < bytes.length) this.#line = Buffer.concat([this.#line, bytes.subarray(from)])
  }

  #takeLine(line: Buffer, at: number): void {
    const text = dataOfLine(line.toString("utf8"))
    if (text === null) return
    if (text === streamEnd) {
      this.#done = true
      return
    }
    const event = parse(text)
    if (event === null) this.#problem ??= "unreadable"
    else this.#takeEvent(event, at)
  }

  #takeEvent(event: Parsed, at: number): void {
    if (event.error != null) this.#problem ??= "error_event"
    const choices: ReadonlyArray<unknown> = Array.isArray(event.choices) ? event.choices : []
    if (choices.some(bringsTokens)) this.arrivals.push(at)
    for (const choice of choices) {
      if (!isObject(choice) || typeof choice.finish_reason !== "string") continue
      this.#finished = true
      if (choice.finish_reason === "abort") this.#problem ??= "aborted"
    }
    const { usage } = event
    if (isObject(usage) && typeof usage.prompt_tokens === "number" && typeof usage.completion_tokens === "number") {
      this.usage = { prompt: usage.prompt_tokens, completion: usage.completion_tokens }
    }
  }
}
