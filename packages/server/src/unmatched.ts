import { Api, type ErrorObject } from "@seatrial/api"
import type { RequestId } from "@seatrial/domain"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi } from "effect/http-api"

const paths = new Map<string, ReadonlySet<string>>([
  ["/", new Set(["GET"])],
  ["/openapi.json", new Set(["GET"])],
  ["/docs", new Set(["GET"])]
])
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    paths.set(endpoint.path, new Set([...(paths.get(endpoint.path) ?? []), endpoint.method]))
  }
})

const known = [...paths].map(([path, methods]) => ({
  path,
  pattern: new RegExp(`^${path.replace(/[.]/g, "\\$&").replace(/:[a-z_]+/g, "[^/]+")}$`),
  methods,
  allow: [...methods, ...(methods.has("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ")
}))

/** `OPTIONS *` asks about the server as a whole. */
const anywhere = [...new Set(known.flatMap(({ allow }) => allow.split(", ")))].sort().join(", ")

const error = (status: number, code: string, message: string, request_id: RequestId, headers: Record<string, string> = {}) => {
  const body: ErrorObject = { error: { message, type: status === 404 ? "not_found_error" : "invalid_request_error", code, request_id } }
  return HttpServerResponse.jsonUnsafe(body, { status, headers })
}

/** The path of the contract that an address is one of; `other` where it is none. */
export const routeOf = (url: string): string => {
  const path = url.replace(/[?;#].*$/s, "")
  return known.find(({ pattern }) => pattern.test(path))?.path ?? "other"
}

/** What no route takes: another method of a path that there is, or a path that there is not. */
export const answerUnmatched = ({ method, url }: HttpServerRequest.HttpServerRequest, id: RequestId): HttpServerResponse.HttpServerResponse => {
  const path = url.replace(/[?;#].*$/s, "")
  if (path === "*" && method === "OPTIONS") return HttpServerResponse.empty({ status: 204, headers: { allow: anywhere } })
  const match = known.find(({ pattern }) => pattern.test(path))
  // A path of the right form and method gets here only where its percent-encoding means nothing.
  if (match === undefined || match.methods.has(method)) return error(404, "not_found", "There is no such path.", id)
  if (method === "OPTIONS") return HttpServerResponse.empty({ status: 204, headers: { allow: match.allow } })
  return error(405, "method_not_allowed", `This path takes ${match.allow}.`, id, { allow: match.allow })
}

/** What is wrong with a request that HTTP's own rules refuse; null if nothing is. */
export const faultOf = ({ headers, source }: HttpServerRequest.HttpServerRequest): string | null => {
  if (!("httpVersion" in source)) return null
  // Headers that stand twice are joined.
  if (source.httpVersion === "1.1" && (headers.host === undefined || headers.host.includes(","))) return "it needs one Host."
  // RFC 9112, section 6.1: what such a message says of its length means nothing, so nobody knows where the next one begins.
  return source.httpVersion === "1.0" && headers["transfer-encoding"] !== undefined ? "HTTP/1.0 has no Transfer-Encoding." : null
}

export const answerMalformed = (id: RequestId, fault: string): HttpServerResponse.HttpServerResponse =>
  error(400, "invalid_parameter", `This is not a well-formed HTTP request: ${fault}`, id, { connection: "close" })
