import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { ErrorObject } from "@seatrial/api"
import { encodeIdBody } from "@seatrial/domain"
import { Duration } from "effect"

/** How long the server waits for slow clients. */
export interface ClientTimeouts {
  /** For the request line and headers. */
  readonly headers: Duration.Duration
  /** For the whole request. */
  readonly request: Duration.Duration
  /** For another request on an open connection. */
  readonly keepAlive: Duration.Duration
  /** While nothing at all is read or written; longer than any request may take. */
  readonly stalled: Duration.Duration
}

export const defaultClientTimeouts: ClientTimeouts = {
  headers: Duration.seconds(10),
  request: Duration.seconds(60),
  // Longer than the minute for which load balancers keep theirs: one of them that uses a connection again must not meet its end.
  keepAlive: Duration.seconds(65),
  stalled: Duration.seconds(90)
}

/** Bytes of the request line and all headers. */
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
  message: "The server does not know this method, or does not serve it on any path."
}

/** A request line, as far as its method may be one. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]\r?$/

/** Whether the parser stopped at a method that it does not know, in a line that is a request's otherwise. */
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
  // Whoever sends on without reading does not keep the connection.
  socket.once("finish", () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\n\r\n${body}`
  )
}

type Exchange = readonly [request: IncomingMessage, response: ServerResponse]

/** Ends a connection that sent no request, with an Error object unless one that it sent before has begun to be answered and would be spoilt. */
const endConnection = (socket: Duplex, refusal: Refusal | null, last: Exchange | undefined): void => {
  const answer = () => {
    if (refusal !== null && socket.writable) refuse(socket, refusal)
  }
  if (refusal === null || !socket.writable) socket.destroy()
  else if (last === undefined) answer()
  else {
    const [request, response] = last
    const answered = response.writableFinished
    // The rest of a body that has been answered already is no request of its own.
    if (!request.complete && answered) socket.destroy()
    else if (!request.complete && response.headersSent) response.once("finish", () => socket.destroy())
    else if (!request.complete || answered) answer()
    // Answers come in the order of their requests.
    else response.once("finish", answer)
  }
}

/**
 * A `node:http` server that does not wait for slow clients, and takes 16 KiB of request line and headers at most. What never becomes a request is answered with an
 * Error object too.
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
    // Two of a header that may stand once only are one that is wrong, not the first of them.
    joinDuplicateHeaders: true,
    // A missing Host is answered below, with an Error object.
    requireHostHeader: false
  })
  server.timeout = Duration.toMillis(timeouts.stalled)
  const exchanges = new WeakMap<Duplex, Exchange>()
  server.on("request", (message, response) => {
    exchanges.set(message.socket, [message, response])
  })
  // What else is expected of us is not done: the request is taken as it is.
  server.on("checkExpectation", (message, response) => void server.emit("request", message, response))
  server.on("clientError", (failure: NodeJS.ErrnoException, socket) =>
    endConnection(socket, failure.code === "ECONNRESET" ? null : refusalOf(failure), exchanges.get(socket))
  )
  // Without a listener Node closes the connection without an answer.
  server.on("connect", (_, socket: Duplex) => {
    socket.on("error", () => socket.destroy())
    endConnection(socket, methodNotImplemented, exchanges.get(socket))
  })
  return server
}
