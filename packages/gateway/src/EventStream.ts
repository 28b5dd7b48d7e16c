import type { ServerResponse } from "node:http"
import type { ReceiptDigests } from "./ReceiptDigests.ts"

const head = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}
const chunkedHead = { ...head, "transfer-encoding": "chunked" }

export interface EventStreamOptions {
  readonly response: ServerResponse
  /** Milliseconds of silence after which `keepAlive` keeps the connection alive. */
  readonly heartbeat: number
  readonly keepAlive: string
  /** Milliseconds that a caller may take to read what waits for it. */
  readonly writeStall: number
  readonly onStall: () => void
  /** Of all that goes out; null unless the caller asked for them. */
  readonly digests: ReceiptDigests | null
}

/** The caller's end of a stream. Its head, and with it the status 200, goes out with the first frame or heartbeat. */
export class EventStream {
  readonly response: ServerResponse
  readonly #options: EventStreamOptions
  #timer: NodeJS.Timeout | undefined
  #writtenAt = performance.now()
  #chunked = false

  constructor(options: EventStreamOptions) {
    this.response = options.response
    this.#options = options
  }

  /** From here on bytes may go out, and silence is filled. */
  open() {
    const { heartbeat, writeStall } = this.#options
    this.#timer = setInterval(() => this.#look(), Math.min(1_000, Math.ceil(Math.min(heartbeat, writeStall) / 4)))
  }

  #look() {
    const { heartbeat, keepAlive, onStall, writeStall } = this.#options
    const silence = performance.now() - this.#writtenAt
    if (this.response.writableNeedDrain) {
      if (silence > writeStall) onStall()
    } else if (silence > heartbeat) this.write(keepAlive)
  }

  get started(): boolean {
    return this.response.headersSent
  }

  /** Chunks are framed here: a response that does so itself writes each in four pieces, which costs as much as all else that is done with a frame. */
  #begin() {
    this.#chunked = this.response.useChunkedEncodingByDefault
    this.response.writeHead(200, this.#chunked ? chunkedHead : head)
    this.response.chunkedEncoding = false
  }

  /** Sends frames, Latin-1; false where the caller reads slower than that: wait for `drain`. */
  write(frames: string): boolean {
    this.#writtenAt = performance.now()
    if (!this.response.headersSent) this.#begin()
    this.#options.digests?.hashAnswer(frames, "latin1")
    return this.response.write(this.#chunked ? `${frames.length.toString(16)}\r\n${frames}\r\n` : frames, "latin1")
  }

  /** No heartbeat follows. */
  close() {
    clearInterval(this.#timer)
  }

  /** The last frames, Latin-1. Their digest was made before the record. */
  end(frames: string) {
    this.close()
    if (!this.response.headersSent) this.#begin()
    const last = frames === "" || !this.#chunked ? frames : `${frames.length.toString(16)}\r\n${frames}\r\n`
    this.response.end(this.#chunked ? `${last}0\r\n\r\n` : last, "latin1")
  }
}
