import { Api } from "@seatrial/api"
import { optionalNullable } from "@seatrial/domain"
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js"
import formats from "ajv-formats"
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"

const AnySchema = Schema.Record(Schema.String, Schema.Unknown)

const Example = Schema.Struct({ value: Schema.Unknown })
const Content = Schema.Record(Schema.String, Schema.Struct({ schema: AnySchema, examples: Schema.optionalKey(Schema.Record(Schema.String, Example)) }))

const Operation = Schema.Struct({
  operationId: Schema.String,
  summary: Schema.String,
  description: Schema.String,
  tags: Schema.Array(Schema.String),
  parameters: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      in: Schema.String,
      required: Schema.Boolean,
      description: Schema.String,
      schema: AnySchema,
      example: Schema.optionalKey(Schema.Unknown)
    })
  ),
  security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
  requestBody: Schema.optionalKey(Schema.Struct({ required: Schema.Boolean, content: Content })),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({
      description: Schema.String,
      headers: Schema.Record(Schema.String, Schema.Struct({ description: Schema.String, schema: AnySchema, required: Schema.Boolean })),
      content: Schema.optionalKey(Content)
    })
  )
})

const Document = Schema.Struct({
  openapi: Schema.String,
  info: Schema.Struct({ title: Schema.String, version: Schema.String, description: Schema.String }),
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation)),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, AnySchema), securitySchemes: Schema.Record(Schema.String, AnySchema) })
})

/** The document as it is served. */
const document = Schema.decodeUnknownSync(Document)(OpenApi.fromApi(Api))

/** The document's operations, with the path as a pattern. */
export const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    ...operation,
    method: method.toUpperCase(),
    path,
    pattern: new RegExp(`^${path.replace(/\./g, "\\.").replace(/\{[^}]+\}/g, "[^/]+")}$`)
  }))
)

/** The schema with references to the document instead of to itself. */
const ajvSchema = (schema: AnySchemaObject) =>
  Schema.decodeUnknownSync(Schema.fromJsonString(AnySchema))(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'))

const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: false, validateFormats: true })
formats.default(ajv)
ajv.addVocabulary(["components"])
// Added once: a schema that contained all of them would take longer to compile than the rest of it.
ajv.addSchema(ajvSchema({ components: { schemas: document.components.schemas } }), "document")

const validators = new Map<string, ValidateFunction>()

/** How a value violates a schema of the document, or null. */
export const schemaFault = (schema: AnySchemaObject, value: unknown): string | null => {
  const text = JSON.stringify(schema)
  const validate = validators.get(text) ?? ajv.compile(ajvSchema(schema))
  validators.set(text, validate)
  return validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: "" })
}

/** Headers that must be documented on every response that has them. */
const documentedHeaders = ["retry-after", "location", "idempotent-replayed", "allow", "www-authenticate", "etag", "cache-control", "seatrial-signature"]

const Failure = Schema.fromJsonString(
  Schema.Struct({
    error: Schema.Struct({
      message: Schema.String,
      type: Schema.String,
      code: Schema.String,
      param: optionalNullable(Schema.String),
      request_id: Schema.String
    })
  })
)
const failureOf = Schema.decodeUnknownSync(Failure, { onExcessProperty: "error" })

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
}

const parse = (text: string): unknown => JSON.parse(text)

const headerFault = (name: string, schema: AnySchemaObject, given: unknown): string | null => {
  const fault = schemaFault(schema, schema.type === "integer" ? Number(given) : given)
  return fault === null ? null : `the header ${name} is ${String(given)}: ${fault}`
}

/** Whether the document has the path, with any method. */
export const isDocumented = (path: string): boolean => operations.some(({ pattern }) => pattern.test(path.replace(/\?.*$/s, "")))

/** Throws if a response does not conform to the served document: the path, status, headers, media type and body. */
export const assertConforms = (method: string, path: string, answer: Answer): void => {
  const complaint = (what: string) => new Error(`${method} ${path} -> ${answer.status}: ${what}: ${answer.text.slice(0, 2_000)}`)
  const requestId = answer.headers["x-request-id"]
  if (typeof requestId !== "string" || !/^req_[0-9a-z]{26}$/.test(requestId)) throw complaint("no x-request-id")
  const bare = method === "HEAD" || answer.status === 204 || answer.status === 304
  if (bare && answer.text !== "") throw complaint("a body that is not allowed")
  if (answer.status >= 400 && !bare && failureOf(answer.text).error.request_id !== requestId) throw complaint("the error has another request id")

  const pathname = path.replace(/\?.*$/s, "")
  const candidates = operations.filter(({ pattern }) => pattern.test(pathname))
  // A path that matches can still be refused, for example for an invalid percent-encoding.
  if (candidates.length === 0) {
    if (answer.status === 404 || answer.status === 400 || (method === "OPTIONS" && pathname === "*")) return
    throw complaint("the path is not documented")
  }
  if (method === "OPTIONS") {
    if (answer.status !== 204 || answer.headers.allow === undefined) throw complaint("no Allow")
    return
  }
  const wanted = method === "HEAD" ? "GET" : method
  // Every operation of the path documents the response to an unsupported method.
  const operation = candidates.find((candidate) => candidate.method === wanted) ?? (answer.status === 405 ? candidates[0] : undefined)
  if (operation === undefined) throw complaint("the method is not documented")
  if (answer.status === 404 && /%(?![0-9a-f]{2})|%[89a-f]/i.test(pathname)) return
  const response = operation.responses[String(answer.status)]
  if (response === undefined) throw complaint("the status is not documented")
  for (const [name, { required, schema }] of Object.entries(response.headers)) {
    const value = answer.headers[name]
    if (value === undefined && required) throw complaint(`no header ${name}`)
    const fault = value === undefined ? null : headerFault(name, schema, value)
    if (fault !== null) throw complaint(fault)
  }
  for (const name of documentedHeaders)
    if (answer.headers[name] !== undefined && response.headers[name] === undefined) throw complaint(`${name} is not documented`)
  if (bare) return
  if (response.content === undefined) {
    if (answer.text !== "") throw complaint("no content is documented")
    return
  }
  const type = String(answer.headers["content-type"]).replace(/ *;.*$/, "")
  const media = response.content[type]
  if (media === undefined) throw complaint(`${type} is not documented`)
  const fault = schemaFault(media.schema, type.endsWith("json") ? parse(answer.text) : answer.text)
  if (fault !== null) throw complaint(fault)
}
