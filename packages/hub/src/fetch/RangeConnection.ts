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

/**
 * Reads from the socket directly into reused buffers and writes them out while the next ones fill. The streams of
 * Node's client allocate a buffer per 64 KiB, which costs more than everything else here.
 */
export const makeRangeConnection = (): RangeConnection => {
  let socket: Socket | null = null
  let origin = ""
  let running: Running | null = null
  const blocks = new BlockBuffers()
  let writing = false

  const drop = () => {
    const ending = socket
    socket = null
    ending?.destroy()
  }

  const end = (job: Running, error: Error | null) => {
    if (job.ended !== null || running !== job) return
    job.ended = { error }
    if (error !== null || !job.reusable) drop()
    if (job.wanted) blocks.seal()
    else blocks.clear()
    void flush()
  }

  const flush = async () => {
    if (writing) return
    writing = true
    const job = running
    let failure: Error | null = null
    for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) {
      if (failure === null && job !== null) {
        try {
          await job.transfer.write(block.bytes.subarray(block.start, block.end))
        } catch (error) {
          failure = error instanceof Error ? error : new Error(String(error))
          if (job.ended === null) job.ended = { error: failure }
          drop()
        }
      }
      blocks.release(block)
      if (job?.ended === null && socket !== null) socket.resume()
    }
    writing = false
    if (job !== null && job.ended !== null && running === job) {
      running = null
      blocks.clear()
      job.settle(failure ?? job.ended.error)
    }
  }

  /** Parses the head if it is complete. Returns false if more data is needed. */
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
    job.reusable = length !== null && (wanted === length || (wanted === null && length <= maxDrained)) && head.headers.get("connection") !== "close"
    job.left = wanted ?? (job.reusable ? (length ?? 0) : 0)
    return true
  }

  /** Returns whether to continue reading. */
  const take = (bytes: number): boolean => {
    const job = running
    const block = blocks.active
    if (job === null || block === null || job.ended !== null) {
      drop()
      return false
    }
    job.stale = false
    block.end += bytes
    let came = bytes
    if (job.head === null) {
      try {
        if (!takeHead(job, block)) return true
      } catch (error) {
        end(job, error instanceof Error ? error : new Error(String(error)))
        return false
      }
      came = block.end - block.start
    }
    if (came > job.left) {
      // Bytes after the body are ignored.
      block.end -= came - job.left
      came = job.left
      job.reusable = false
    }
    job.left -= came
    job.transfer.onReceived(came)
    if (!job.wanted) block.end = block.start
    if (job.left === 0) {
      end(job, null)
      return socket !== null
    }
    if (!blocks.isFull(block)) return true
    if (job.wanted) blocks.seal()
    else blocks.clear()
    void flush()
    return blocks.hasFree
  }

  const open = (transfer: Transfer): Socket => {
    const opened = openSocket(transfer, {
      // Without a free buffer, reading pauses until a write has finished.
      buffer: () => {
        const block = blocks.room()
        return block.bytes.subarray(block.end)
      },
      callback: take
    })
    watch(opened)
    return opened
  }

  const watch = (opened: Socket) => {
    const lost = (error: Error) => {
      if (socket !== opened) return
      socket = null
      opened.destroy()
      const job = running
      if (job === null) return
      if (job.stale && job.ended === null) {
        job.stale = false
        blocks.clear()
        send(job)
      } else end(job, error)
    }
    opened.on("error", lost)
    opened.on("end", () => lost(new HubUnavailable({ message: "The model hub ended a file early." })))
    opened.on("close", () => lost(new HubUnavailable({ message: "The model hub ended a file early." })))
  }

  /** Reads from a tunnel, which cannot read directly into the buffers. */
  const feed = (opened: Socket) =>
    opened.on("data", (chunk: Buffer) => {
      for (let at = 0; at < chunk.length && socket === opened; ) {
        const block = blocks.room()
        const bytes = chunk.copy(block.bytes, block.end, at)
        at += bytes
        if (take(bytes)) continue
        if (socket !== opened) return
        opened.pause()
        if (at < chunk.length) opened.unshift(chunk.subarray(at))
        return
      }
    })

  /** Uses a proxy. The request is sent after the tunnel is open. */
  const goBy = (proxy: URL, job: Running) => {
    const { opened, raw } = openTunnel(proxy, job.transfer.url)
    socket = raw
    opened.then(
      (ready) => {
        if (socket !== raw) return ready.destroy()
        socket = ready
        watch(ready)
        feed(ready)
        write(ready, job)
      },
      (error: unknown) => {
        if (socket !== raw) return
        socket = null
        end(job, error instanceof Error ? error : new Error(String(error)))
      }
    )
  }

  const write = (to: Socket, { transfer: { headers, url } }: Running) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    to.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n${lines.join("")}\r\n`)
    to.resume()
  }

  const send = (job: Running) => {
    const { url } = job.transfer
    if (socket === null || origin !== url.origin) {
      drop()
      origin = url.origin
      const proxy = proxyFor(url)
      if (proxy !== null) return goBy(proxy, job)
      socket = open(job.transfer)
    }
    write(socket, job)
  }

  return {
    get: (transfer) =>
      new Promise((resolve, reject) => {
        if (Object.entries(transfer.headers).some(([name, value]) => !isHeader(name, value)))
          return reject(new HubUnavailable({ message: "A header for the model hub, such as its token, holds a character that no header may." }))
        const job: Running = {
          transfer,
          stale: socket !== null && origin === transfer.url.origin,
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
        running = job
        send(job)
      }),
    close: (reason) => {
      if (running !== null) end(running, reason)
      drop()
    }
  }
}
