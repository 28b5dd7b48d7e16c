import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import { Server as NetServer } from "node:net"
import { Data, Effect, type Scope } from "effect"
import { refuseMalformedRequests } from "./malformedRequests.ts"

/** The address cannot be listened on. */
export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string; readonly taken: boolean }> {}

export interface ListenOptions {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Milliseconds that requests under way have to end when the scope closes. */
  readonly grace: number
  /**
   * Milliseconds for which everybody is still served before that, new connections too, while `/readyz` says that nobody should come: until others have heard of it. Absent: 0.
   */
  readonly drain?: number
  /**
   * Milliseconds for which what still comes on open connections is answered then, with `connection: close`: a client that uses an idle one again at that very moment is not
   * cut off. Absent: 0.
   */
  readonly linger?: number
  /** The server to listen with, not listening yet; one of its own where absent. */
  readonly server?: Server
}

/** A server that does not wait for slow clients. A header that stands twice is seen as one that is wrong: of two keys or types a proxy may have looked at the other one. */
export const makeServer = (): Server => {
  // Node compares connections with the first two once an interval only.
  const times = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 2_000, keepAliveTimeout: 65_000 }
  // A request without a Host is answered by the gateway, with an Error object.
  const server = createServer({ ...times, maxHeaderSize: 16_384, noDelay: true, joinDuplicateHeaders: true, requireHostHeader: false })
  // Whatever else is expected of us, the request itself is answered: an answer of Node's own would have neither an id nor a body.
  server.on("checkExpectation", (request, response) => void server.emit("request", request, response))
  refuseMalformedRequests(server)
  return server
}

const stopping = Symbol("stopping")

/** Calls `stop` when the server that serves this response has no more time for it: what is to be said must be said then. */
export const onStopping = (response: ServerResponse, stop: () => void): void => {
  response.once(stopping, stop)
}

/**
 * Calls `serve` when it is the request's turn on its connection. An answer behind another one has no connection yet and would not hear of its end: the work on it begins when
 * the one before is out, and never where the caller has gone by then.
 */
const inTurn = (response: ServerResponse, serve: () => void): void => {
  if (response.socket !== null) serve()
  else {
    response.once("socket", (socket) => {
      // The time that the answer before had to be taken is not this one's.
      socket.setTimeout(0)
      // Whoever waits for the end of the one before hears of it first.
      process.nextTick(() => {
        if (!response.destroyed) serve()
      })
    })
  }
}

/** Milliseconds for the last words. */
const lastWords = 2_000

/** Serves until the scope closes: then no new connection is taken, what is under way may end, then is told to, and the rest is cut. Gives the port. */
export const listen = (
  handler: RequestListener,
  { drain = 0, grace, host, linger = 0, port, server = makeServer() }: ListenOptions
): Effect.Effect<number, ListenError, Scope.Scope> => {
  const underWay = new Set<ServerResponse>()
  let lingering = false
  let draining = false
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    underWay.add(response)
    if (draining || !server.listening) response.shouldKeepAlive = false
    response.once("close", () => {
      underWay.delete(response)
      // A connection that becomes idle now is of no more use.
      if (!server.listening && !lingering) setImmediate(() => server.closeIdleConnections())
    })
    if (draining && request.url === "/readyz") response.writeHead(503, { "content-type": "application/json" }).end('{"status":"stopping"}')
    else handler(request, response)
  }
  server.on("request", (request, response) => inTurn(response, () => serve(request, response)))
  const open = Effect.callback<number, ListenError>((resume) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      resume(new ListenError({ message: `${host}:${port} cannot be listened on (${cause.code}).`, taken: cause.code === "EADDRINUSE" }))
    )
    server.listen(port, host, () => {
      const address = server.address()
      resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : port))
    })
  })
  const close = Effect.callback<void>((resume) => {
    const tell = setTimeout(() => {
      for (const response of underWay) response.emit(stopping)
    }, grace)
    const cut = setTimeout(() => server.closeAllConnections(), grace + lastWords)
    const over = () => {
      lingering = false
      server.closeIdleConnections()
    }
    lingering = linger > 0
    const idle = lingering ? setTimeout(over, linger) : undefined
    // That of `node:http` closes idle connections first.
    NetServer.prototype.close.call(server, () => {
      for (const timer of [tell, cut, idle]) clearTimeout(timer)
      resume(Effect.void)
    })
    if (!lingering) over()
  })
  const drained = Effect.suspend(() => {
    if (drain === 0) return Effect.void
    draining = true
    return Effect.sleep(drain)
  })
  return Effect.acquireRelease(open, () => Effect.andThen(drained, close))
}
