import type { IncomingMessage, ServerResponse } from "node:http"
import { invalidBody } from "./refusals.ts"

/** The refusal of a body that comes in too many small chunks. */
export const tooFine = invalidBody("The body arrived in too many small chunks. Send it in chunks of at least 64 bytes, or with a Content-Length.")

/** A body may have this many chunks of any size, and more of them if they have so many bytes on average. */
const [mostFineChunks, fineChunkBytes] = [500, 64]

/** Milliseconds in which the request must be answered before its connection is closed. */
const answerMillis = 10_000

/** Milliseconds that a caller has to read why its connection is closed. */
const closingMillis = 500

interface ChunkGuard {
  readonly isTripped: boolean
  /** Calls `action` once the guard has tripped. */
  readonly onTrip: (action: () => void) => void
}

const guards = new WeakMap<IncomingMessage, ChunkGuard>()

/** The guard of a request; undefined if its body is not chunked. */
export const chunkGuardOf = (request: IncomingMessage): ChunkGuard | undefined => guards.get(request)

/**
 * Counts the chunks of a chunked body from its first byte on. Node calls back for each chunk that one read of the connection brought, up to 10,000 of them, and stores each as an
 * object until someone reads the body, for example while the key is looked up. If they are too many and too small, the guard drops the rest at once and reads nothing more.
 */
export const guardChunks = (request: IncomingMessage): void => {
  if (request.headers["transfer-encoding"] === undefined) return
  let count = 0
  let bytes = 0
  let action: (() => void) | undefined
  let isTripped = false
  const push = request.push.bind(request)
  guards.set(request, {
    get isTripped() {
      return isTripped
    },
    onTrip: (next) => {
      action = next
    }
  })
  request.push = (chunk: Buffer | null) => {
    if (isTripped) return true
    if (chunk === null) return push(null)
    count++
    bytes += chunk.length
    if (count <= mostFineChunks || bytes >= count * fineChunkBytes) return push(chunk)
    isTripped = true
    const { socket } = request
    socket.pause()
    setTimeout(() => socket.destroy(), answerMillis).unref()
    action?.()
    return true
  }
}

/** Reads nothing more from the connection of a request whose guard has tripped, and closes it soon after the answer. */
export const closeUnread = ({ socket }: IncomingMessage, response: ServerResponse): void => {
  const close = () => {
    // Node itself resumes the connection right after "finish".
    setImmediate(() => socket.pause())
    setTimeout(() => socket.destroy(), closingMillis).unref()
  }
  if (response.writableFinished) close()
  else response.once("finish", close)
}
