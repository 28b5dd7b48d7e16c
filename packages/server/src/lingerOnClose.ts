import type { Server as HttpServer } from "node:http"
import { Server } from "node:net"

/**
 * Lets a server that is closed take no new connection, but answer what still comes on those that it has, for so many milliseconds and with `connection: close`: a client that
 * uses an idle one again at that very moment is not cut off, and goes elsewhere next. Then idle ones are closed, as they would have been at once.
 */
export const lingerOnClose = (server: HttpServer, milliseconds: number): HttpServer => {
  let closing = false
  server.prependListener("request", (_, response) => {
    if (closing) response.shouldKeepAlive = false
  })
  server.close = (done) => {
    closing = true
    const linger = setTimeout(() => server.closeIdleConnections(), milliseconds)
    // That of `node:http` closes idle connections first.
    Server.prototype.close.call(server, (error) => {
      clearTimeout(linger)
      done?.(error)
    })
    return server
  }
  return server
}
