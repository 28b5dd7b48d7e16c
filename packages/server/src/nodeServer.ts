import { createServer, type Server } from "node:http"
import type { ErrorObject } from "@seatrial/api"
import { encodeIdBody } from "@seatrial/domain"
import { type MalformedRequest, refuseMalformedRequests, serveInTurn } from "@seatrial/http"
import { Duration } from "effect"

/** Timeouts for slow clients. */
export interface ClientTimeouts {
  /** For the request line and headers. */
  readonly headers: Duration.Duration
  /** For the complete request. */
  readonly request: Duration.Duration
  /** For the next request on an open connection. */
  readonly keepAlive: Duration.Duration
  /** For a connection without any traffic. Must be longer than the longest request. */
  readonly stalled: Duration.Duration
}

export const defaultClientTimeouts: ClientTimeouts = {
  headers: Duration.seconds(10),
  request: Duration.seconds(60),
  // Longer than the 60 seconds of common load balancers, so that they never reuse a connection that the server is closing.
  keepAlive: Duration.seconds(65),
  stalled: Duration.seconds(90)
}

/** Maximum bytes of the request line and all headers. */
const maxHeaderBytes = 16_384

/** Renders the error of a message that is not a valid HTTP request. */
const renderMalformed = ({ code, message }: MalformedRequest) => {
  const id = `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`
  const error: ErrorObject = { error: { message, type: "invalid_request_error", code, request_id: id } }
  return { headers: { "x-request-id": id }, body: JSON.stringify(error) }
}

/**
 * A `node:http` server with timeouts for slow clients and a limit of 16 KiB for the request line and headers. Input that is not a valid
 * request gets an Error object as well.
 */
export const makeNodeServer = (timeouts: ClientTimeouts = defaultClientTimeouts): Server => {
  const headers = Duration.toMillis(timeouts.headers)
  const request = Math.max(headers, Duration.toMillis(timeouts.request))
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headers,
    requestTimeout: request,
    keepAliveTimeout: Duration.toMillis(timeouts.keepAlive),
    connectionsCheckingInterval: Math.max(20, Math.min(2_000, headers / 5)),
    // Join duplicates of a header that may occur only once, so that they are refused. Node would use the first one.
    joinDuplicateHeaders: true,
    // The app checks Host itself, to respond with an Error object.
    requireHostHeader: false
  })
  serveInTurn(server)
  server.timeout = Duration.toMillis(timeouts.stalled)
  // Unsupported `Expect` headers are ignored: the request is handled as usual.
  server.on("checkExpectation", (message, response) => void server.emit("request", message, response))
  refuseMalformedRequests(server, { answersTimeouts: true, render: renderMalformed })
  return server
}
