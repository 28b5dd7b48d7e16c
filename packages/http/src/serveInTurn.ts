import { IncomingMessage, type Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { guardChunks } from "./chunkGuard.ts"

/** Requests that may wait on one connection for the answers before theirs. */
const maxWaiting = 100

interface Turns {
  /** Whether a request of this connection was handled in this turn of the event loop. */
  isTaken: boolean
  waiting: number
}

/**
 * Handles one request of a connection at a time, and one in each turn of the event loop. Node reads up to 64 KiB at
 * once and emits all pipelined requests in it, up to 2,500. If they were handled at once, all other connections would
 * wait for them. A request whose caller has left before its turn is dropped. A connection on which too many requests
 * wait is closed.
 */
export const serveInTurn = (server: Server): void => {
  const connections = new WeakMap<Socket, Turns>()
  const emit: (event: string, ...values: ReadonlyArray<unknown>) => boolean = server.emit.bind(server)

  const turnsOf = (socket: Socket): Turns => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const turns = { isTaken: false, waiting: 0 }
    connections.set(socket, turns)
    return turns
  }

  const serve = (request: IncomingMessage, response: ServerResponse, turns: Turns) => {
    turns.isTaken = true
    setImmediate(() => {
      turns.isTaken = false
    })
    emit("request", request, response)
  }

  const wait = (request: IncomingMessage, response: ServerResponse, turns: Turns) => {
    const { socket } = request
    turns.waiting++
    if (turns.waiting > maxWaiting) {
      socket.destroy()
      return
    }
    const next = () =>
      setImmediate(() => {
        turns.waiting--
        if (!response.destroyed && !socket.destroyed) serve(request, response, turns)
      })
    if (response.socket !== null) {
      next()
      return
    }
    // The response gets the socket when the previous one is finished.
    response.once("socket", () => {
      // Resets the timeout that the previous response set.
      socket.setTimeout(server.timeout)
      next()
    })
  }

  const take = (request: IncomingMessage, response: ServerResponse) => {
    if (request.socket.destroyed) return
    // At once, because parts of the body may have arrived with the request.
    guardChunks(request, response)
    const turns = turnsOf(request.socket)
    if (response.socket === null || turns.isTaken) wait(request, response, turns)
    else serve(request, response, turns)
  }

  server.emit = (event: string, ...values: ReadonlyArray<unknown>): boolean => {
    const [request, response] = values
    if (event !== "request" || !(request instanceof IncomingMessage && response instanceof ServerResponse)) return emit(event, ...values)
    take(request, response)
    return true
  }
}
