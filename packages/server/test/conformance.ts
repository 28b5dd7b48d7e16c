import { Api, ErrorObject } from "@seatrial/api"
import { JsonSchema, Schema, SchemaRepresentation } from "effect"
import { OpenApi } from "effect/http-api"

const AnySchema = Schema.Record(Schema.String, Schema.Unknown)

const Document = Schema.Struct({
  openapi: Schema.String,
  info: Schema.Struct({ title: Schema.String, version: Schema.String, description: Schema.String }),
  paths: Schema.Record(
    Schema.String,
    Schema.Record(
      Schema.String,
      Schema.Struct({
        operationId: Schema.String,
        parameters: Schema.Array(Schema.Struct({ name: Schema.String, in: Schema.String, required: Schema.Boolean, schema: AnySchema })),
        security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
        responses: Schema.Record(
          Schema.String,
          Schema.Struct({
            description: Schema.String,
            headers: Schema.Record(Schema.String, Schema.Struct({ schema: AnySchema, required: Schema.Boolean })),
            content: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct({ schema: AnySchema })))
          })
        )
      })
    )
  ),
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

const decoders = new Map<unknown, (text: string) => unknown>()

const decoderOf = (schema: JsonSchema.JsonSchema): ((text: string) => unknown) => {
  const known = decoders.get(schema)
  if (known !== undefined) return known
  const imported = SchemaRepresentation.fromJsonSchemaDocument(JsonSchema.fromSchemaOpenApi3_1({ ...schema, $defs: document.components.schemas }), {
    patterns: "apply"
  })
  const accept = Schema.decodeUnknownSync(Schema.toType(imported), { onExcessProperty: "error" })
  const decode = (text: string) => accept(JSON.parse(text))
  decoders.set(schema, decode)
  return decode
}

const errorObject = Schema.decodeUnknownSync(Schema.fromJsonString(ErrorObject), { onExcessProperty: "error" })

/** Throws where an answer is not what the served document says of the operation (or the contract of every answer). */
export const assertConforms = (
  method: string,
  path: string,
  answer: { readonly status: number; readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>; readonly text: string }
): void => {
  const complaint = (what: string) => new Error(`${method} ${path} -> ${answer.status}: ${what}: ${answer.text}`)
  const requestId = answer.headers["x-request-id"]
  if (typeof requestId !== "string" || !/^req_[0-9a-z]{26}$/.test(requestId)) throw complaint("no x-request-id")
  if (answer.status >= 400 && method !== "HEAD") {
    if (errorObject(answer.text).error.request_id !== requestId) throw complaint("the error repeats another request id")
  }
  const pathname = path.replace(/\?.*$/s, "")
  const operation = operations.find((candidate) => candidate.method === method && candidate.pattern.test(pathname))
  if (operation === undefined) return
  const response = operation.responses[String(answer.status)]
  if (response === undefined) throw complaint("the status is not documented")
  for (const [name, header] of Object.entries(response.headers)) {
    if (header.required && answer.headers[name] === undefined) throw complaint(`no header ${name}`)
  }
  const content = response.content?.["application/json"]
  if (content === undefined) throw complaint("no content is documented")
  if (!/^application\/json/.test(String(answer.headers["content-type"]))) throw complaint("not JSON")
  decoderOf(content.schema)(answer.text)
}
