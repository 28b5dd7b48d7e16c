import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"

/** The error of a message that is not a valid HTTP request. Its type is `invalid_request_error`. */
export interface MalformedRequest {
  readonly status: number
  readonly code: string
  readonly message: string
}

const malformed = (message: string): MalformedRequest => ({ status: 400, code: "invalid_parameter", message })

const unreadable = malformed("This is not a well-formed HTTP request.")
const headersTooLarge: MalformedRequest = { status: 431, code: "headers_too_large", message: "The request line and headers are too large." }
const requestTimeout: MalformedRequest = { status: 408, code: "request_timeout", message: "The request took too long to arrive." }
const methodNotImplemented: MalformedRequest = {
  status: 501,
  code: "method_not_allowed",
  message: "The server does not support this method on any path."
}

/** The next request may have no clear target either, so the connection must be closed. */
const hostless = malformed("This is not a well-formed HTTP request: it must have exactly one Host header.")
/** RFC 9112, section 6.1: the length of such a message is unreliable, so the start of the next request is unknown. */
const codedByOldVersion = malformed("This is not a well-formed HTTP request: HTTP/1.0 does not support Transfer-Encoding.")

/**
 * The fault in the head of a request that Node accepts; null if there is none. The connection must be closed after
 * the answer. Node joins repeated Host headers with a comma.
 */
export const malformedHead = ({ headers, httpVersion }: IncomingMessage): MalformedRequest | null => {
  if (httpVersion === "1.1" && (headers.host === undefined || headers.host.includes(","))) return hostless
  return httpVersion === "1.0" && headers["transfer-encoding"] !== undefined ? codedByOldVersion : null
}

/** A request line with any valid token as its method. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]\r?$/

/** Whether the parser failed at an unknown method in an otherwise valid request line. */
const isUnknownMethod = (failure: NodeJS.ErrnoException): boolean => {
  if (failure.code !== "HPE_INVALID_METHOD" || !("rawPacket" in failure && Buffer.isBuffer(failure.rawPacket) && "bytesParsed" in failure)) return false
  const text = failure.rawPacket.toString("latin1")
  const start = text.lastIndexOf("\n", Number(failure.bytesParsed) - 1) + 1
  return requestLine.test(text.slice(start).split("\n", 1)[0] ?? "")
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export interface MalformedRequestOptions {
  /** Whether a request that takes too long to arrive gets an answer. Otherwise its connection is closed without one. */
  readonly answersTimeouts: boolean
  /** The answer's headers, and its body as JSON. `exchange`: the request, if only its body is malformed. */
  readonly render: (error: MalformedRequest, exchange: Exchange | undefined) => { readonly headers: Readonly<Record<string, string>>; readonly body: string }
}

/** The error of a message that Node cannot parse; null if the connection must be closed without an answer. */
const errorOf = (failure: NodeJS.ErrnoException, answersTimeouts: boolean): MalformedRequest | null => {
  if (failure.code === "ECONNRESET") return null
  if (failure.code === "ERR_HTTP_REQUEST_TIMEOUT") return answersTimeouts ? requestTimeout : null
  if (failure.code === "HPE_HEADER_OVERFLOW") return headersTooLarge
  return isUnknownMethod(failure) ? methodNotImplemented : unreadable
}

/**
 * Answers messages that Node cannot parse with an Error object, after all responses in progress on the connection. Then
 * it closes the connection, because the start of the next request is unknown.
 */
export const refuseMalformedRequests = (server: Server, { answersTimeouts, render }: MalformedRequestOptions): void => {
  const last = new WeakMap<Duplex, Exchange>()
  const open = new WeakMap<Duplex, Set<Exchange>>()
  // Later data on such a connection fails to parse again.
  const ended = new WeakSet<Duplex>()

  const answer = (socket: Duplex, error: MalformedRequest, exchange?: Exchange): void => {
    if (!socket.writable) return
    const { body, headers } = render(error, exchange)
    const lines = Object.entries({ connection: "close", "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers })
    // A client that keeps sending without reading must not keep the connection open.
    socket.once("finish", () => socket.destroy())
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")
    socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head}\r\n${body}`)
  }

  /** Ends a connection with one request in progress or none. */
  const endAfter = (socket: Duplex, error: MalformedRequest, { request, response }: Exchange): void => {
    if (request.complete) {
      if (response.writableFinished) answer(socket, error)
      else response.once("finish", () => answer(socket, error))
      // The rest of a body whose request is answered already is not a new request.
    } else if (response.writableFinished) socket.destroy()
    else if (response.headersSent) response.once("finish", () => socket.destroy())
    else answer(socket, error, { request, response })
  }

  const end = (socket: Duplex, error: MalformedRequest | null): void => {
    if (ended.has(socket)) return
    ended.add(socket)
    const exchange = last.get(socket)
    const before = [...(open.get(socket) ?? [])].findLast((other) => other !== exchange)
    if (error === null || !socket.writable) socket.destroy()
    // Responses must come in the order of their requests, so wait for the previous one.
    else if (before !== undefined) before.response.once("finish", () => answer(socket, error, exchange?.request.complete === false ? exchange : undefined))
    else if (exchange === undefined) answer(socket, error)
    else endAfter(socket, error, exchange)
  }

  server.on("request", (request, response) => {
    const exchange = { request, response }
    const { socket } = request
    last.set(socket, exchange)
    const exchanges = open.get(socket) ?? new Set()
    open.set(socket, exchanges.add(exchange))
    response.once("close", () => exchanges.delete(exchange))
  })
  server.on("clientError", (failure: NodeJS.ErrnoException, socket) => end(socket, errorOf(failure, answersTimeouts)))
  // Without a listener Node closes the connection without an answer.
  server.on("connect", (_, socket: Duplex) => {
    socket.on("error", () => socket.destroy())
    end(socket, methodNotImplemented)
  })
}
