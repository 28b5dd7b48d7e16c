import type { LookupFunction } from "node:net"
import { HubUnavailable } from "../failures.ts"
import type { Block } from "./BlockBuffers.ts"
import { lengthOf, parseHead, type ResponseHead } from "./ResponseHead.ts"

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

const maxHeadBytes = 64 * 1024
/** Maximum length of an unwanted body that is read to keep the connection. */
const maxDrained = 64 * 1024

/** The current request of a connection. */
export interface RunningTransfer {
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

/** The job of a request that begins. `stale`: whether its connection was used before. */
export const startTransfer = (transfer: Transfer, stale: boolean, resolve: (head: ResponseHead) => void, reject: (error: Error) => void): RunningTransfer => {
  const job: RunningTransfer = {
    transfer,
    stale,
    head: null,
    left: 0,
    wanted: false,
    reusable: false,
    ended: null,
    settle: (error) => {
      if (error !== null || job.head === null) reject(error ?? new HubUnavailable({ message: "The model hub sent an empty answer." }))
      else resolve(job.head)
    }
  }
  return job
}

/** Whether a connection can serve another request after this one. `wanted`: bytes of the body that are read. */
const isReusable = (head: ResponseHead, length: number | null, wanted: number | null): boolean =>
  length !== null && (wanted === length || (wanted === null && length <= maxDrained)) && head.headers.get("connection") !== "close"

/** Parses the head at the start of a block if it is complete. Returns false if more data is needed. */
export const takeHead = (job: RunningTransfer, block: Block): boolean => {
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
export const countBody = (job: RunningTransfer, block: Block, bytes: number): void => {
  const received = Math.min(bytes, job.left)
  if (received < bytes) {
    block.end -= bytes - received
    job.reusable = false
  }
  job.left -= received
  job.transfer.onReceived(received)
  if (!job.wanted) block.end = block.start
}
