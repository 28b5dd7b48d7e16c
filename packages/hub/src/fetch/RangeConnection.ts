import type { Socket } from "node:net"
import { HubUnavailable } from "../failures.ts"
import { openTunnel, proxyFor } from "../proxy.ts"
import { type Block, BlockBuffers } from "./BlockBuffers.ts"
import { openSocket } from "./openSocket.ts"
import { isHeader, type ResponseHead } from "./ResponseHead.ts"
import { countBody, type RunningTransfer, startTransfer, type Transfer, takeHead } from "./RunningTransfer.ts"

/** A connection for consecutive requests. It is opened again if the last one has ended or had another destination. */
export interface RangeConnection {
  /** Rejects if the connection ends early, after the received bytes are written. */
  readonly get: (transfer: Transfer) => Promise<ResponseHead>
  /** Closes the connection and fails the current request with `reason`. */
  readonly close: (reason: Error) => void
}

const asError = (cause: unknown): Error => (cause instanceof Error ? cause : new Error(String(cause)))
const endedEarly = () => new HubUnavailable({ message: "The model hub ended a file early." })

/**
 * Reads from the socket directly into reused buffers and writes them out while the next ones fill. The streams of
 * Node's client allocate a buffer per 64 KiB, which costs more than everything else here.
 */
class BufferedConnection implements RangeConnection {
  #socket: Socket | null = null
  #origin = ""
  #running: RunningTransfer | null = null
  readonly #blocks = new BlockBuffers()
  #isWriting = false

  get(transfer: Transfer): Promise<ResponseHead> {
    return new Promise((resolve, reject) => {
      if (Object.entries(transfer.headers).some(([name, value]) => !isHeader(name, value)))
        return reject(new HubUnavailable({ message: "A header for the model hub, such as its token, has a character that HTTP does not allow." }))
      const isReused = this.#socket !== null && this.#origin === transfer.url.origin
      const job = startTransfer(transfer, isReused, resolve, reject)
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

  #end(job: RunningTransfer, error: Error | null): void {
    if (job.ended !== null || this.#running !== job) return
    job.ended = { error }
    if (error !== null || !job.reusable) this.#drop()
    this.#passOn(job)
  }

  /** Hands the active buffer to the writer, or empties it if the body is not wanted. */
  #passOn(job: RunningTransfer): void {
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
  async #writeOut(job: RunningTransfer, block: Block): Promise<Error | null> {
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

  #settle(job: RunningTransfer, failure: Error | null): void {
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

  #takeBody(job: RunningTransfer, block: Block, bytes: number): boolean {
    countBody(job, block, bytes)
    if (job.left === 0) {
      this.#end(job, null)
      return this.#socket !== null
    }
    if (!this.#blocks.isFull(block)) return true
    this.#passOn(job)
    return this.#blocks.hasFree
  }

  #send(job: RunningTransfer): void {
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
  #sendByProxy(proxy: URL, job: RunningTransfer): void {
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

  #write(socket: Socket, { transfer: { headers, url } }: RunningTransfer): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n${lines.join("")}\r\n`)
    socket.resume()
  }
}

export const makeRangeConnection = (): RangeConnection => new BufferedConnection()
