import { IncomingMessage } from "node:http"
import { Api, type ErrorObject } from "@seatrial/api"
import type { RequestId } from "@seatrial/domain"
import { type MalformedRequest, malformedHead } from "@seatrial/http"
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

/** All methods of the server, for `OPTIONS *`. */
const allMethods = [...new Set(known.flatMap(({ allow }) => allow.split(", ")))].sort().join(", ")

const error = (status: number, code: string, message: string, request_id: RequestId, headers: Record<string, string> = {}) => {
  const body: ErrorObject = { error: { message, type: status === 404 ? "not_found_error" : "invalid_request_error", code, request_id } }
  return HttpServerResponse.jsonUnsafe(body, { status, headers })
}

const pathOf = (url: string): string => url.replace(/[?#].*$/s, "")

/** Whether a URL has a `;` in its path. No path of the contract does, but the router would read a query after it. */
export const hasSemicolon = ({ url }: HttpServerRequest.HttpServerRequest): boolean => pathOf(url).includes(";")

/** The path template of the contract that matches a URL, or `other`. */
export const routeOf = (url: string): string => {
  const path = pathOf(url)
  return known.find(({ pattern }) => pattern.test(path))?.path ?? "other"
}

/** The response to a request that no route matches: unknown path, other method, or OPTIONS. */
export const answerUnmatched = ({ method, url }: HttpServerRequest.HttpServerRequest, id: RequestId): HttpServerResponse.HttpServerResponse => {
  const path = pathOf(url)
  if (path === "*" && method === "OPTIONS") return HttpServerResponse.empty({ status: 204, headers: { allow: allMethods } })
  const match = known.find(({ pattern }) => pattern.test(path))
  // A matching path and method get here only if the percent-encoding is invalid or the path has a `;`.
  if (match === undefined || match.methods.has(method)) return error(404, "not_found", "This path does not exist.", id)
  if (method === "OPTIONS") return HttpServerResponse.empty({ status: 204, headers: { allow: match.allow } })
  return error(405, "method_not_allowed", `This path accepts ${match.allow}.`, id, { allow: match.allow })
}

/** The error of a request that is not valid HTTP; null if it is. */
export const malformedRequest = ({ source }: HttpServerRequest.HttpServerRequest): MalformedRequest | null =>
  source instanceof IncomingMessage ? malformedHead(source) : null

export const answerMalformed = (id: RequestId, { code, message, status }: MalformedRequest): HttpServerResponse.HttpServerResponse =>
  error(status, code, message, id, { connection: "close" })
