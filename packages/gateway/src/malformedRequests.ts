import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { encodeIdBody } from "@seatrial/domain"
import { dialectOf } from "./dialects/dialects.ts"
import { pathOf } from "./pathOf.ts"
import { headersTooLarge, invalidParameter, Refusal } from "./refusals.ts"

const malformed = invalidParameter("This is not a well-formed HTTP request.")

/** Whom the next request on its connection would be meant for is not known either. */
export const hostless = new Refusal({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_parameter",
  message: "This is not a well-formed HTTP request: it needs one Host.",
  param: null,
  headers: { connection: "close" }
})

/** RFC 9112, section 6.1: what such a message says of its length means nothing, so nobody knows where the next one begins. */
export const codedByOldVersion = new Refusal({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_parameter",
  message: "This is not a well-formed HTTP request: HTTP/1.0 has no Transfer-Encoding.",
  param: null,
  headers: { connection: "close" }
})

const methodNotImplemented = new Refusal({
  status: 501,
  type: "invalid_request_error",
  code: "method_not_allowed",
  message: "The server does not know this method, or does not serve it on any path.",
  param: null
})

/** A request line, as far as its method may be one. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]\r?$/

/** Whether the parser stopped at a method that it does not know, in a line that is a request's otherwise. */
const isUnknownMethod = (failure: NodeJS.ErrnoException): boolean => {
  if (failure.code !== "HPE_INVALID_METHOD" || !("rawPacket" in failure && Buffer.isBuffer(failure.rawPacket) && "bytesParsed" in failure)) return false
  const text = failure.rawPacket.toString("latin1")
  const start = text.lastIndexOf("\n", Number(failure.bytesParsed) - 1) + 1
  return requestLine.test(text.slice(start).split("\n", 1)[0] ?? "")
}

const refusalOf = (failure: NodeJS.ErrnoException): Refusal =>
  failure.code === "HPE_HEADER_OVERFLOW" ? headersTooLarge : isUnknownMethod(failure) ? methodNotImplemented : malformed

/** Whether there is no caller to tell, or none that would read it. */
const isSilent = ({ code }: NodeJS.ErrnoException) => code === "ERR_HTTP_REQUEST_TIMEOUT" || code === "ECONNRESET"

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Says what is wrong with what was sent, and closes: where the next request would begin is not known. `asked`: the request whose body it was to be, under whose id it is told. */
const answer = (socket: Duplex, error: Refusal, asked: Exchange | undefined): void => {
  if (!socket.writable) return
  const given = asked?.response.getHeader("x-request-id")
  const id = typeof given === "string" ? given : `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`
  const body = dialectOf(pathOf(asked?.request.url)).errorBody(error, id)
  // Whoever sends on without reading does not keep the connection.
  socket.once("finish", () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\nrequest-id: ${id}\r\n\r\n${body}`
  )
}

/** `error`: null to say nothing. `open`: what came on the connection and is not answered to its end, in its order. */
const end = (socket: Duplex, error: Refusal | null, last: Exchange | undefined, open: ReadonlyArray<Exchange>): void => {
  const before = open.findLast((exchange) => exchange !== last)
  if (error === null || !socket.writable) socket.destroy()
  // Answers come in the order of their requests: this one would stand in the midst of that one.
  else if (before !== undefined) before.response.once("finish", () => answer(socket, error, last?.request.complete === false ? last : undefined))
  else if (last === undefined) answer(socket, error, undefined)
  else {
    const { request, response } = last
    const { headersSent, writableFinished } = response
    if (!request.complete) {
      // The rest of a body that is answered already is no request of its own.
      if (writableFinished) socket.destroy()
      else if (headersSent) response.once("finish", () => socket.destroy())
      else answer(socket, error, last)
    } else if (writableFinished) answer(socket, error, undefined)
    else response.once("finish", () => answer(socket, error, undefined))
  }
}

/**
 * Has a server tell what came as no request, where it can be told: with an Error object, and behind what is being answered. A request that did not come in time is cut off
 * without a word: clients send again what was answered with 408.
 */
export const refuseMalformedRequests = (server: Server): void => {
  const last = new WeakMap<Duplex, Exchange>()
  const open = new WeakMap<Duplex, Set<Exchange>>()
  // All that follows on such a connection is found wrong once more.
  const ended = new WeakSet<Duplex>()
  server.on("request", (request, response) => {
    const exchange = { request, response }
    const { socket } = request
    last.set(socket, exchange)
    const others = open.get(socket) ?? new Set()
    open.set(socket, others.add(exchange))
    response.once("close", () => others.delete(exchange))
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
