import { connect, type Socket } from "node:net"

/** One response. Times are `performance.now()`. */
export interface Answer {
  readonly status: number
  readonly sentAt: number
  readonly firstBodyByteAt: number
  readonly endedAt: number
}

const headEnd = Buffer.from("\r\n\r\n")
const lastChunk = Buffer.from("\r\n0\r\n\r\n")

/**
 * A keep-alive HTTP/1.1 connection with one request at a time. It reads only what the measurement needs (status, length, end), so that it costs
 * far less than the measured server. The client of `node:http` needs more processor time than a minimal server.
 */
export class HttpConnection {
  readonly #host: string
  readonly #port: number
  readonly #told: ((chunk: Buffer) => void) | undefined
  #socket: Socket | undefined
  #pending: { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void; readonly sentAt: number } | undefined
  #head: Buffer = Buffer.alloc(0)
  #status = 0
  #firstBodyByteAt = 0
  /** Remaining bytes of the body. -1: chunked. Undefined: still in the headers. */
  #left: number | undefined
  #tail: Buffer = Buffer.alloc(0)

  /** `read`: called with all received data. */
  constructor(host: string, port: number, read?: (chunk: Buffer) => void) {
    this.#host = host
    this.#port = port
    this.#told = read
  }

  send(request: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket ?? this.#open()
      this.#head = Buffer.alloc(0)
      this.#left = undefined
      this.#tail = Buffer.alloc(0)
      this.#firstBodyByteAt = 0
      this.#pending = { resolve, reject, sentAt: performance.now() }
      socket.write(request)
    })
  }

  close(): void {
    this.#socket?.destroy()
  }

  #open(): Socket {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
    this.#socket = socket
    socket.on("data", (chunk: Buffer) => this.#read(chunk))
    socket.on("error", () => {})
    socket.on("close", () => {
      if (this.#socket === socket) this.#socket = undefined
      const pending = this.#pending
      this.#pending = undefined
      pending?.reject(new Error("The connection was closed before the answer had ended."))
    })
    return socket
  }

  #read(chunk: Buffer): void {
    this.#told?.(chunk)
    let body = chunk
    if (this.#left === undefined) {
      const head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
      const end = head.indexOf(headEnd)
      if (end === -1) {
        this.#head = head
        return
      }
      const text = head.toString("latin1", 0, end)
      this.#status = Number(text.slice(9, 12))
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1]
      this.#left = length === undefined ? -1 : Number(length)
      body = head.subarray(end + headEnd.length)
    }
    if (body.length > 0 && this.#firstBodyByteAt === 0) this.#firstBodyByteAt = performance.now()
    if (this.#left === -1) {
      this.#tail = Buffer.concat([this.#tail, body]).subarray(-lastChunk.length)
      if (this.#tail.equals(lastChunk)) this.#done()
    } else {
      this.#left -= body.length
      if (this.#left <= 0) this.#done()
    }
  }

  #done(): void {
    const pending = this.#pending
    this.#pending = undefined
    pending?.resolve({ status: this.#status, sentAt: pending.sentAt, firstBodyByteAt: this.#firstBodyByteAt, endedAt: performance.now() })
  }
}
