import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import { Server as NetServer } from "node:net"
import { serveInTurn } from "@seatrial/http"
import { Data, Effect, type Scope } from "effect"
import { refuseMalformedRequests } from "./malformedRequests.ts"

/** The address cannot be listened on. */
export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string; readonly taken: boolean }> {}

export interface ListenOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /** Milliseconds that requests under way have to end when the scope closes. */
  readonly grace: number
  /**
   * Milliseconds before `grace` in which all requests are still served, including those on new connections, while
   * `/readyz` fails, so that load balancers notice. Default: 0.
   */
  readonly drain?: number
  /**
   * Milliseconds in which requests on open connections are still answered afterwards, with `connection: close`. Without
   * this, a client that just reuses an idle connection would be cut off. Default: 0.
   */
  readonly linger?: number
  /** The server to listen with; it must not be listening yet. Default: a new one. */
  readonly server?: Server
}

/**
 * A server that does not wait for slow clients. Repeated headers are joined and thus rejected: a proxy may have read
 * another one of two keys or types than the gateway.
 */
export const makeServer = (): Server => {
  // Node checks the first two timeouts only once per `connectionsCheckingInterval`.
  const times = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 2_000, keepAliveTimeout: 65_000 }
  // The gateway itself answers a request without a Host, with an Error object.
  const server = createServer({ ...times, maxHeaderSize: 16_384, noDelay: true, joinDuplicateHeaders: true, requireHostHeader: false })
  serveInTurn(server)
  // Handles requests with any other `Expect` header normally: Node's own answer has no request ID and no body.
  server.on("checkExpectation", (request, response) => void server.emit("request", request, response))
  refuseMalformedRequests(server)
  return server
}

const stopping = Symbol("stopping")

/**
 * Calls `stop` when the server is about to close the connection of this response. The handler must finish the response
 * at once.
 */
export const onStopping = (response: ServerResponse, stop: () => void): void => {
  response.once(stopping, stop)
}

/** Milliseconds that handlers have to finish after `stop`. */
const lastWords = 2_000

/**
 * Serves until the scope closes. Then it accepts no new connections, lets requests under way end, asks the remaining
 * ones to stop, and closes the rest. Returns the port.
 */
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
      // Close a connection that becomes idle during shutdown.
      if (!server.listening && !lingering) setImmediate(() => server.closeIdleConnections())
    })
    if (draining && request.url === "/readyz") response.writeHead(503, { "content-type": "application/json" }).end('{"status":"stopping"}')
    else handler(request, response)
  }
  server.on("request", serve)
  const open = Effect.callback<number, ListenError>((resume) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      resume(new ListenError({ message: `Cannot listen on ${host}:${port} (${cause.code}).`, taken: cause.code === "EADDRINUSE" }))
    )
    server.listen(port, host, () => {
      const address = server.address()
      resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : port))
    })
  })
  const close = Effect.callback<void>((resume) => {
    const announce = setTimeout(() => {
      for (const response of underWay) response.emit(stopping)
    }, grace)
    const cut = setTimeout(() => server.closeAllConnections(), grace + lastWords)
    const over = () => {
      lingering = false
      server.closeIdleConnections()
    }
    lingering = linger > 0
    const idle = lingering ? setTimeout(over, linger) : undefined
    // The `close` of `node:http` would close idle connections first.
    NetServer.prototype.close.call(server, () => {
      for (const timer of [announce, cut, idle]) clearTimeout(timer)
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
