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
  /** Milliseconds of silence after which `keepAlive` is sent. */
  readonly heartbeatMillis: number
  readonly keepAlive: string
  /** Milliseconds that the caller may take to read buffered data. */
  readonly writeStallMillis: number
  readonly onStall: () => void
  /** Digest of all bytes sent; null if the caller did not ask for digests. */
  readonly digests: ReceiptDigests | null
}

/** The caller's side of a stream. The response head with status 200 is sent with the first frame or heartbeat. */
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

  /** From now on frames may be written, and heartbeats fill the silence. */
  open() {
    const { heartbeatMillis, writeStallMillis } = this.#options
    this.#timer = setInterval(() => this.#checkSilence(), Math.min(1_000, Math.ceil(Math.min(heartbeatMillis, writeStallMillis) / 4)))
  }

  #checkSilence() {
    const { heartbeatMillis, keepAlive, onStall, writeStallMillis } = this.#options
    const silence = performance.now() - this.#writtenAt
    if (this.response.writableNeedDrain) {
      if (silence > writeStallMillis) onStall()
    } else if (silence > heartbeatMillis) this.write(keepAlive)
  }

  get started(): boolean {
    return this.response.headersSent
  }

  /**
   * The chunked framing is written here, because a Node response writes each chunk in four pieces, which costs as much
   * as all other work on a frame.
   */
  #begin() {
    this.#chunked = this.response.useChunkedEncodingByDefault
    this.response.writeHead(200, this.#chunked ? chunkedHead : head)
    this.response.chunkedEncoding = false
  }

  /** Sends frames in Latin-1. Returns false if the caller reads too slowly; then wait for `drain`. */
  write(frames: string): boolean {
    this.#writtenAt = performance.now()
    if (!this.response.headersSent) this.#begin()
    this.#options.digests?.hashAnswer(frames, "latin1")
    return this.response.write(this.#chunked ? `${frames.length.toString(16)}\r\n${frames}\r\n` : frames, "latin1")
  }

  /** Stops the heartbeats. */
  close() {
    clearInterval(this.#timer)
  }

  /**
   * Sends the last frames in Latin-1. They are in the digest already, because the record with the digest is committed
   * first.
   */
  end(frames: string) {
    this.close()
    if (!this.response.headersSent) this.#begin()
    const last = frames === "" || !this.#chunked ? frames : `${frames.length.toString(16)}\r\n${frames}\r\n`
    this.response.end(this.#chunked ? `${last}0\r\n\r\n` : last, "latin1")
  }
}
