import type { Server as HttpServer } from "node:http"
import { Server } from "node:net"

/**
 * Delays the closing of idle connections when the server closes. For `milliseconds` the server accepts no new
 * connection, but still answers requests on open ones, with `connection: close`. A client that reuses an idle
 * connection at that moment gets a response and then reconnects elsewhere.
 */
export const lingerOnClose = (server: HttpServer, milliseconds: number): HttpServer => {
  let closing = false
  server.prependListener("request", (_, response) => {
    if (closing) response.shouldKeepAlive = false
  })
  server.close = (done) => {
    closing = true
    const linger = setTimeout(() => server.closeIdleConnections(), milliseconds)
    // `close` of `node:http` would close idle connections first.
    Server.prototype.close.call(server, (error) => {
      clearTimeout(linger)
      done?.(error)
    })
    return server
  }
  return server
}
