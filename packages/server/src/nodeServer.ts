import { createServer, type Server, STATUS_CODES } from "node:http"
import type { ErrorObject } from "@seatrial/api"
import { encodeIdBody } from "@seatrial/domain"

const refusals: Readonly<Record<string, { readonly status: number; readonly code: string; readonly message: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: "headers_too_large", message: "The request line and headers are too large." },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: "request_timeout", message: "The request took too long to arrive." }
}

const malformed = { status: 400, code: "invalid_parameter", message: "This is not a well-formed HTTP request." }

/**
 * A `node:http` server that does not wait for slow clients: headers within 10 s, the whole request within 60 s, idle connections for 5 s, request line and headers
 * of 16 KiB at most. What never becomes a request is answered with an Error object too.
 */
export const makeNodeServer = (): Server => {
  const server = createServer({
    maxHeaderSize: 16_384,
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    keepAliveTimeout: 5_000,
    connectionsCheckingInterval: 2_000
  })
  server.on("clientError", (failure: NodeJS.ErrnoException, socket) => {
    if (failure.code === "ECONNRESET" || !socket.writable) return socket.destroy()
    const { code, message, status } = refusals[failure.code ?? ""] ?? malformed
    const request_id = `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`
    const error: ErrorObject = { error: { message, type: "invalid_request_error", code, request_id } }
    const body = JSON.stringify(error)
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${request_id}\r\n\r\n${body}`
    )
  })
  return server
}
