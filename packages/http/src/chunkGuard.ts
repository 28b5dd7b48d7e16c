import type { IncomingMessage, ServerResponse } from "node:http"

/** The message for a caller whose body tripped the guard. */
export const tooManySmallChunks = "The body arrived in too many small chunks. Send it in chunks of at least 64 bytes, or with a Content-Length."

/**
 * A body may have this many chunks of any size, and one more for each so many bytes. The first number includes the
 * chunks that are cut by the end of a read.
 */
const [maxSmallChunks, smallChunkBytes] = [500, 64]

/** Milliseconds in which the request must be answered before its connection is closed. */
const answerMillis = 10_000

/** Milliseconds that a caller has to read why its connection is closed. */
const closingMillis = 500

interface ChunkGuard {
  readonly isTripped: boolean
  /** Calls `action` once the guard has tripped. */
  readonly onTrip: (action: () => void) => void
}

const guards = new WeakMap<object, ChunkGuard>()

/** The guard of a request; undefined if its body is not chunked. */
export const chunkGuardOf = (request: object): ChunkGuard | undefined => guards.get(request)

/** Reads nothing more from the connection, and closes it soon after the answer. */
const closeUnread = (request: IncomingMessage, response: ServerResponse): void => {
  const { socket } = request
  socket.pause()
  // Again, because a reader that paces itself resumes the connection in the next turn.
  setImmediate(() => socket.pause())
  // Node reads the rest of a request after its answer, which would resume the connection.
  request._read = () => {}
  const closeIn = (millis: number) => setTimeout(() => socket.destroy(), millis).unref()
  closeIn(answerMillis)
  if (response.writableFinished) closeIn(closingMillis)
  else {
    response.once("finish", () => {
      setImmediate(() => socket.pause())
      closeIn(closingMillis)
    })
  }
}

/**
 * A listener for `request`, before all others. It counts the chunks of a chunked body from its first byte on. Node
 * calls back for each chunk that one read of the connection brought, up to 10,000 of them, and stores each as an object
 * until someone reads the body, for example while the key is looked up. If they are too many and too small, the guard
 * drops the rest at once, reads nothing more, and closes the connection after the answer.
 */
export const guardChunks = (request: IncomingMessage, response: ServerResponse): void => {
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
    if (bytes >= (count - maxSmallChunks) * smallChunkBytes) return push(chunk)
    isTripped = true
    closeUnread(request, response)
    action?.()
    return true
  }
}
