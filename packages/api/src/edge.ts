import { type Json, mapMembers } from "./jsonTree.ts"

// Responses that the server sends before an endpoint is reached, and paths that are not endpoints. The OpenAPI
// generator knows neither.

const nullable = { anyOf: [{ type: "string" }, { type: "null" }] }

const errorSchema = (code: string): Json => ({
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        message: { type: "string" },
        type: { type: "string", enum: ["invalid_request_error"] },
        code: { type: "string", enum: [code] },
        param: nullable,
        request_id: { type: "string" }
      },
      required: ["message", "type", "code"],
      additionalProperties: false
    }
  },
  required: ["error"],
  additionalProperties: false
})

const edgeSchemas: Json = {
  MalformedRequestError: errorSchema("invalid_parameter"),
  MethodNotAllowedError: errorSchema("method_not_allowed"),
  RequestTimeoutError: errorSchema("request_timeout"),
  HeadersTooLargeError: errorSchema("headers_too_large")
}

const json = (schema: string): Json => ({ content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } } })

/** Responses that every operation of a path can return. `own`: the responses that its endpoint already describes. */
export const edgeResponses = (path: string, own: Json): Json => ({
  ...("400" in own ? {} : { "400": json("MalformedRequestError") }),
  // The contract lists 404 for every operation of the family, including lists, which never return it.
  ...(path.startsWith("/v1/org/") && !("404" in own) ? { "404": json("NotFoundError") } : {}),
  "405": { headers: { allow: { required: true } }, ...json("MethodNotAllowedError") },
  "408": json("RequestTimeoutError"),
  "431": json("HeadersTooLargeError"),
  ...("500" in own ? {} : { "500": json("InternalError") })
})

const text = { schema: { type: "string" }, required: true }
const cached: Json = { etag: text, "cache-control": text }
export const ifNoneMatch = { name: "if-none-match", in: "header", required: false, schema: { type: "string" } }

const openApiSchema: Json = {
  type: "object",
  properties: { openapi: { type: "string" }, info: { type: "object" }, paths: { type: "object" } },
  required: ["openapi", "info", "paths"]
}

const indexSchema: Json = {
  type: "object",
  properties: {
    name: { type: "string" },
    links: { type: "object", additionalProperties: { type: "string" } },
    inference: { type: "array", items: { type: "string" } },
    note: { type: "string" }
  },
  required: ["name", "links", "inference", "note"],
  additionalProperties: false
}

/** A cacheable document in one or more media types. */
const file = (operationId: string, schemas: Json, headers: Json = cached): Json => ({
  tags: ["system"],
  operationId,
  security: [],
  parameters: [ifNoneMatch],
  responses: {
    "200": { headers, content: mapMembers(schemas, (schema) => ({ schema })) },
    "304": { headers }
  }
})

/** The paths that are not endpoints, and the schemas of the responses above. */
export const ownPaths: { readonly paths: Json; readonly schemas: Json } = {
  paths: {
    "/": { get: file("system.index", { "application/json": indexSchema, "text/html": { type: "string" } }, { ...cached, vary: text }) },
    "/openapi.json": { get: file("system.document", { "application/json": openApiSchema }) },
    "/docs": { get: file("system.docs", { "text/html": { type: "string" } }) }
  },
  schemas: edgeSchemas
}
