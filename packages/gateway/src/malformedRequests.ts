import type { Server } from "node:http"
import { encodeIdBody } from "@seatrial/domain"
import * as http from "@seatrial/http"
import { dialectOf } from "./dialects/dialects.ts"
import { pathOf } from "./pathOf.ts"
import { Refusal } from "./refusals.ts"

/** The refusal of a malformed request. The connection is closed, because the start of the next request is unknown. */
export const malformedRefusal = (error: http.MalformedRequest): Refusal =>
  new Refusal({ ...error, type: "invalid_request_error", param: null, headers: { connection: "close" } })

/**
 * Answers malformed requests in the format of their path. A request that timed out is closed without an answer, because
 * clients would repeat a request that is answered with 408.
 */
export const refuseMalformedRequests = (server: Server): void =>
  http.refuseMalformedRequests(server, {
    answersTimeouts: false,
    render: (error, exchange) => {
      const header = exchange?.response.getHeader("x-request-id")
      const id = typeof header === "string" ? header : `req_${encodeIdBody(Date.now(), crypto.getRandomValues(new Uint8Array(10)))}`
      const body = dialectOf(pathOf(exchange?.request.url)).errorBody(malformedRefusal(error), id)
      return { headers: { "x-request-id": id, "request-id": id }, body }
    }
  })
