import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { encodeIdBody } from "@seatrial/domain"
import { dialectOf } from "./dialects/dialects.ts"
import { pathOf } from "./pathOf.ts"
import { headersTooLarge, invalidParameter, Refusal } from "./refusals.ts"

const malformed = invalidParameter("This is not a well-formed HTTP request.")

/** The connection is closed, because the target of the next request is just as unclear. */
export const hostless = new Refusal({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_parameter",
  message: "This is not a well-formed HTTP request: it must have exactly one Host header.",
  param: null,
  headers: { connection: "close" }
})

/** RFC 9112, section 6.1: the length of such a message is unreliable, so the start of the next request is unknown. */
export const codedByOldVersion = new Refusal({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_parameter",
  message: "This is not a well-formed HTTP request: HTTP/1.0 does not support Transfer-Encoding.",
  param: null,
  headers: { connection: "close" }
})

const methodNotImplemented = new Refusal({
  status: 501,
  type: "invalid_request_error",
  code: "method_not_allowed",
  message: "The server does not support this method on any path.",
  param: null
})

/** A request line with any valid token as its method. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]\r?$/

/** Whether the parser failed at an unknown method in an otherwise valid request line. */
const isUnknownMethod = (failure: NodeJS.ErrnoException): boolean => {
  if (failure.code !== "HPE_INVALID_METHOD" || !("rawPacket" in failure && Buffer.isBuffer(failure.rawPacket) && "bytesParsed" in failure)) return false
  const text = failure.rawPacket.toString("latin1")
  const start = text.lastIndexOf("\n", Number(failure.bytesParsed) - 1) + 1
  return requestLine.test(text.slice(start).split("\n", 1)[0] ?? "")
}

const refusalOf = (failure: NodeJS.ErrnoException): Refusal =>
  failure.code === "HPE_HEADER_OVERFLOW" ? headersTooLarge : isUnknownMethod(failure) ? methodNotImplemented : malformed

/** Whether to close without an answer: the request timed out, or the caller reset the connection. */
const isSilent = ({ code }: NodeJS.ErrnoException) => code === "ERR_HTTP_REQUEST_TIMEOUT" || code === "ECONNRESET"

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Answers the error and closes the connection, because the start of the next request is unknown. `asked`: the request
 * whose body was malformed; the answer gets its ID.
 */
const answer = (socket: Duplex, error: Refusal, malformedExchange: Exchange | undefined): void => {
  if (!socket.writable) return
  const header = malformedExchange?.response.getHeader("x-request-id")
  const id = typeof header === "string" ? header : `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`
  const body = dialectOf(pathOf(malformedExchange?.request.url)).errorBody(error, id)
  // A client that keeps sending without reading must not keep the connection open.
  socket.once("finish", () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\nrequest-id: ${id}\r\n\r\n${body}`
  )
}

/**
 * `error`: null closes without an answer. `open`: requests on the connection whose answers are not finished, in order.
 */
const end = (socket: Duplex, error: Refusal | null, last: Exchange | undefined, open: ReadonlyArray<Exchange>): void => {
  const before = open.findLast((exchange) => exchange !== last)
  if (error === null || !socket.writable) socket.destroy()
  // Responses must come in the order of their requests, so wait for the previous one.
  else if (before !== undefined) before.response.once("finish", () => answer(socket, error, last?.request.complete === false ? last : undefined))
  else if (last === undefined) answer(socket, error, undefined)
  else {
    const { request, response } = last
    const { headersSent, writableFinished } = response
    if (!request.complete) {
      // The rest of a body whose request is answered already is not a new request.
      if (writableFinished) socket.destroy()
      else if (headersSent) response.once("finish", () => socket.destroy())
      else answer(socket, error, last)
    } else if (writableFinished) answer(socket, error, undefined)
    else response.once("finish", () => answer(socket, error, undefined))
  }
}

/**
 * Answers malformed requests with an Error object, after all responses in progress on the connection. A request that
 * timed out is closed without an answer, because clients would repeat a request that is answered with 408.
 */
export const refuseMalformedRequests = (server: Server): void => {
  const last = new WeakMap<Duplex, Exchange>()
  const open = new WeakMap<Duplex, Set<Exchange>>()
  // Later data on such a connection fails to parse again.
  const ended = new WeakSet<Duplex>()
  server.on("request", (request, response) => {
    const exchange = { request, response }
    const { socket } = request
    last.set(socket, exchange)
    const exchanges = open.get(socket) ?? new Set()
    open.set(socket, exchanges.add(exchange))
    response.once("close", () => exchanges.delete(exchange))
  })
  const endOnce = (socket: Duplex, error: Refusal | null) => {
    if (ended.has(socket)) return
    ended.add(socket)
    end(socket, error, last.get(socket), [...(open.get(socket) ?? [])])
  }
  server.on("clientError", (failure: NodeJS.ErrnoException, socket) => endOnce(socket, isSilent(failure) ? null : refusalOf(failure)))
  // Without a listener Node closes the connection without an answer.
  server.on("connect", (_, socket: Duplex) => {
    socket.on("error", () => socket.destroy())
    endOnce(socket, methodNotImplemented)
  })
}
