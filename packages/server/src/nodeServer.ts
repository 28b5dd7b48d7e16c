import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { ErrorObject } from "@seatrial/api"
import { encodeIdBody } from "@seatrial/domain"
import { guardChunks } from "@seatrial/http"
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

interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
}

const refusals: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: "headers_too_large", message: "The request line and headers are too large." },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: "request_timeout", message: "The request took too long to arrive." }
}

const malformed: Refusal = { status: 400, code: "invalid_parameter", message: "This is not a well-formed HTTP request." }

const methodNotImplemented: Refusal = {
  status: 501,
  code: "method_not_allowed",
  message: "The server does not support this method on any path."
}

/** A request line with any valid method. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]\r?$/

/** Whether the parser failed only because of an unknown method in an otherwise valid request line. */
const isUnknownMethod = (failure: NodeJS.ErrnoException): boolean => {
  if (failure.code !== "HPE_INVALID_METHOD" || !("rawPacket" in failure && Buffer.isBuffer(failure.rawPacket) && "bytesParsed" in failure)) return false
  const text = failure.rawPacket.toString("latin1")
  const start = text.lastIndexOf("\n", Number(failure.bytesParsed) - 1) + 1
  return requestLine.test(text.slice(start).split("\n", 1)[0] ?? "")
}

const refusalOf = (failure: NodeJS.ErrnoException): Refusal => (isUnknownMethod(failure) ? methodNotImplemented : (refusals[failure.code ?? ""] ?? malformed))

const requestId = () => `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`

const errorBody = ({ code, message }: Refusal, request_id: string): string => {
  const error: ErrorObject = { error: { message, type: "invalid_request_error", code, request_id } }
  return JSON.stringify(error)
}

const refuse = (socket: Duplex, refusal: Refusal): void => {
  const id = requestId()
  const body = errorBody(refusal, id)
  // Close the connection even if the client continues to send without reading.
  socket.once("finish", () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\n\r\n${body}`
  )
}

type Exchange = readonly [request: IncomingMessage, response: ServerResponse]

/** Ends a connection after an unparsable request. Sends an Error object, unless that would corrupt the response to an earlier request. */
const endConnection = (socket: Duplex, refusal: Refusal | null, last: Exchange | undefined): void => {
  const answer = () => {
    if (refusal !== null && socket.writable) refuse(socket, refusal)
  }
  if (refusal === null || !socket.writable) socket.destroy()
  else if (last === undefined) answer()
  else {
    const [request, response] = last
    const isAnswered = response.writableFinished
    // The input is the rest of a body whose request has already been answered.
    if (!request.complete && isAnswered) socket.destroy()
    else if (!request.complete && response.headersSent) response.once("finish", () => socket.destroy())
    else if (!request.complete || isAnswered) answer()
    // Responses must be sent in the order of their requests.
    else response.once("finish", answer)
  }
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
  server.on("request", guardChunks)
  server.timeout = Duration.toMillis(timeouts.stalled)
  const exchanges = new WeakMap<Duplex, Exchange>()
  server.on("request", (message, response) => {
    exchanges.set(message.socket, [message, response])
  })
  // Unsupported `Expect` headers are ignored: the request is handled as usual.
  server.on("checkExpectation", (message, response) => void server.emit("request", message, response))
  server.on("clientError", (failure: NodeJS.ErrnoException, socket) =>
    endConnection(socket, failure.code === "ECONNRESET" ? null : refusalOf(failure), exchanges.get(socket))
  )
  // Without a listener, Node closes the connection without a response.
  server.on("connect", (_, socket: Duplex) => {
    socket.on("error", () => socket.destroy())
    endConnection(socket, methodNotImplemented, exchanges.get(socket))
  })
  return server
}
