import type { LookupFunction, Socket } from "node:net"
import { HubUnavailable } from "../failures.ts"
import { openTunnel, proxyFor } from "../proxy.ts"
import { type Block, BlockBuffers } from "./BlockBuffers.ts"
import { openSocket } from "./openSocket.ts"
import { isHeader, lengthOf, parseHead, type ResponseHead } from "./ResponseHead.ts"

export interface Transfer {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Resolves the host, if not every address is allowed. */
  readonly lookup?: LookupFunction
  /**
   * Returns the number of wanted body bytes, at most the length in the head; null for none. If it throws, `get` rejects
   * with the error.
   */
  readonly onHead: (head: ResponseHead) => number | null
  /** Called with the body's bytes in order, one call at a time. It owns the bytes until it resolves. */
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** Called with the number of bytes as they arrive from the network. */
  readonly onReceived: (bytes: number) => void
}

/** A connection for consecutive requests. It is opened again if the last one has ended or had another destination. */
export interface RangeConnection {
  /** Rejects if the connection ends early, after the received bytes are written. */
  readonly get: (transfer: Transfer) => Promise<ResponseHead>
  /** Closes the connection and fails the current request with `reason`. */
  readonly close: (reason: Error) => void
}

const maxHeadBytes = 64 * 1024
/** Maximum length of an unwanted body that is read to keep the connection. */
const maxDrained = 64 * 1024

interface Running {
  readonly transfer: Transfer
  /** Whether a reused connection has received no data for this request. */
  stale: boolean
  head: ResponseHead | null
  /** Remaining bytes of the body, and whether they are wanted. */
  left: number
  wanted: boolean
  /** Whether the connection can serve another request afterwards. */
  reusable: boolean
  ended: { readonly error: Error | null } | null
  readonly settle: (error: Error | null) => void
}

const asError = (cause: unknown): Error => (cause instanceof Error ? cause : new Error(String(cause)))
const endedEarly = () => new HubUnavailable({ message: "The model hub ended a file early." })

/** Whether a connection can serve another request after this one. `wanted`: bytes of the body that are read. */
const isReusable = (head: ResponseHead, length: number | null, wanted: number | null): boolean =>
  length !== null && (wanted === length || (wanted === null && length <= maxDrained)) && head.headers.get("connection") !== "close"

/** Parses the head at the start of a block if it is complete. Returns false if more data is needed. */
const takeHead = (job: Running, block: Block): boolean => {
  const at = block.bytes.subarray(block.start, block.end).indexOf("\r\n\r\n")
  if (at === -1) {
    if (block.end - block.start > maxHeadBytes) throw new HubUnavailable({ message: "The head of an answer of the model hub is too long." })
    return false
  }
  const head = parseHead(block.bytes.toString("latin1", block.start, block.start + at))
  block.start += at + 4
  if (head.status < 200) return takeHead(job, block)
  job.head = head
  const length = lengthOf(head)
  const wanted = job.transfer.onHead(head)
  job.wanted = wanted !== null
  job.reusable = isReusable(head, length, wanted)
  job.left = wanted ?? (job.reusable ? (length ?? 0) : 0)
  return true
}

/** Counts bytes of the body that arrived at the end of a block. Bytes after the body are ignored. */
const countBody = (job: Running, block: Block, bytes: number): void => {
  const received = Math.min(bytes, job.left)
  if (received < bytes) {
    block.end -= bytes - received
    job.reusable = false
  }
  job.left -= received
  job.transfer.onReceived(received)
  if (!job.wanted) block.end = block.start
}

/**
 * Reads from the socket directly into reused buffers and writes them out while the next ones fill. The streams of
 * Node's client allocate a buffer per 64 KiB, which costs more than everything else here.
 */
class BufferedConnection implements RangeConnection {
  #socket: Socket | null = null
  #origin = ""
  #running: Running | null = null
  readonly #blocks = new BlockBuffers()
  #isWriting = false

  get(transfer: Transfer): Promise<ResponseHead> {
    return new Promise((resolve, reject) => {
      if (Object.entries(transfer.headers).some(([name, value]) => !isHeader(name, value)))
        return reject(new HubUnavailable({ message: "A header for the model hub, such as its token, holds a character that no header may." }))
      const job: Running = {
        transfer,
        stale: this.#socket !== null && this.#origin === transfer.url.origin,
        head: null,
        left: 0,
        wanted: false,
        reusable: false,
        ended: null,
        settle: (error) => {
          if (error !== null || job.head === null) reject(error ?? new HubUnavailable({ message: "The model hub sends an empty answer." }))
          else resolve(job.head)
        }
      }
      this.#running = job
      this.#send(job)
    })
  }

  close(reason: Error): void {
    if (this.#running !== null) this.#end(this.#running, reason)
    this.#drop()
  }

  #drop(): void {
    const ending = this.#socket
    this.#socket = null
    ending?.destroy()
  }

  #end(job: Running, error: Error | null): void {
    if (job.ended !== null || this.#running !== job) return
    job.ended = { error }
    if (error !== null || !job.reusable) this.#drop()
    this.#passOn(job)
  }

  /** Hands the active buffer to the writer, or empties it if the body is not wanted. */
  #passOn(job: Running): void {
    if (job.wanted) this.#blocks.seal()
    else this.#blocks.clear()
    void this.#flush()
  }

  /** Writes the full buffers, one at a time. After the last one it settles a request that has ended. */
  async #flush(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    const job = this.#running
    let failure: Error | null = null
    for (let block = this.#blocks.shift(); block !== undefined; block = this.#blocks.shift()) {
      if (failure === null && job !== null) failure = await this.#writeOut(job, block)
      this.#blocks.release(block)
      if (job?.ended === null && this.#socket !== null) this.#socket.resume()
    }
    this.#isWriting = false
    if (job !== null) this.#settle(job, failure)
  }

  /** Writes a buffer. Returns the failure, which ends the request, or null. */
  async #writeOut(job: Running, block: Block): Promise<Error | null> {
    try {
      await job.transfer.write(block.bytes.subarray(block.start, block.end))
      return null
    } catch (cause) {
      const failure = asError(cause)
      if (job.ended === null) job.ended = { error: failure }
      this.#drop()
      return failure
    }
  }

  #settle(job: Running, failure: Error | null): void {
    if (job.ended === null || this.#running !== job) return
    this.#running = null
    this.#blocks.clear()
    job.settle(failure ?? job.ended.error)
  }

  /** Takes bytes that were read into the active buffer. Returns whether to continue reading. */
  #take(bytes: number): boolean {
    const job = this.#running
    const block = this.#blocks.active
    if (job === null || block === null || job.ended !== null) {
      this.#drop()
      return false
    }
    job.stale = false
    block.end += bytes
    if (job.head !== null) return this.#takeBody(job, block, bytes)
    try {
      if (!takeHead(job, block)) return true
    } catch (cause) {
      this.#end(job, asError(cause))
      return false
    }
    return this.#takeBody(job, block, block.end - block.start)
  }

  #takeBody(job: Running, block: Block, bytes: number): boolean {
    countBody(job, block, bytes)
    if (job.left === 0) {
      this.#end(job, null)
      return this.#socket !== null
    }
    if (!this.#blocks.isFull(block)) return true
    this.#passOn(job)
    return this.#blocks.hasFree
  }

  #send(job: Running): void {
    const { url } = job.transfer
    if (this.#socket === null || this.#origin !== url.origin) {
      this.#drop()
      this.#origin = url.origin
      const proxy = proxyFor(url)
      if (proxy !== null) {
        this.#sendByProxy(proxy, job)
        return
      }
      this.#socket = this.#open(job.transfer)
    }
    this.#write(this.#socket, job)
  }

  #open(transfer: Transfer): Socket {
    const opened = openSocket(transfer, {
      // Without a free buffer, reading pauses until a write has finished.
      buffer: () => {
        const block = this.#blocks.room()
        return block.bytes.subarray(block.end)
      },
      callback: (bytes) => this.#take(bytes)
    })
    this.#watch(opened)
    return opened
  }

  #watch(opened: Socket): void {
    opened.on("error", (error) => this.#lost(opened, error))
    opened.on("end", () => this.#lost(opened, endedEarly()))
    opened.on("close", () => this.#lost(opened, endedEarly()))
  }

  /** Handles the end of a connection. A request that reused one and got no answer is sent again. */
  #lost(opened: Socket, error: Error): void {
    if (this.#socket !== opened) return
    this.#socket = null
    opened.destroy()
    const job = this.#running
    if (job === null) return
    if (job.stale && job.ended === null) {
      job.stale = false
      this.#blocks.clear()
      this.#send(job)
    } else this.#end(job, error)
  }

  /** Sends the request by a proxy after the tunnel is open. */
  #sendByProxy(proxy: URL, job: Running): void {
    const { opened, raw } = openTunnel(proxy, job.transfer.url)
    this.#socket = raw
    opened.then(
      (ready) => {
        if (this.#socket !== raw) return ready.destroy()
        this.#socket = ready
        this.#watch(ready)
        ready.on("data", (chunk: Buffer) => this.#feed(ready, chunk))
        this.#write(ready, job)
      },
      (cause: unknown) => {
        if (this.#socket !== raw) return
        this.#socket = null
        this.#end(job, asError(cause))
      }
    )
  }

  /** Copies data from a tunnel, which cannot read directly into the buffers. */
  #feed(opened: Socket, chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.#socket === opened; ) {
      const block = this.#blocks.room()
      const bytes = chunk.copy(block.bytes, block.end, at)
      at += bytes
      if (this.#take(bytes)) continue
      if (this.#socket !== opened) return
      opened.pause()
      if (at < chunk.length) opened.unshift(chunk.subarray(at))
      return
    }
  }

  #write(socket: Socket, { transfer: { headers, url } }: Running): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n${lines.join("")}\r\n`)
    socket.resume()
  }
}

export const makeRangeConnection = (): RangeConnection => new BufferedConnection()
