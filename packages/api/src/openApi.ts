import { signatureHeader, signedMediaType } from "@seatrial/domain"
import { introduction, links, modelIdOrName, operationTexts, parameterTexts, pathIds, tagTexts } from "./documentation.ts"
import { edgeResponses, ifNoneMatch, ownPaths } from "./edge.ts"
import { exampleError } from "./exampleErrors.ts"
import { answerExamples, requestExamples, signedExamples } from "./examples.ts"
import { isRecord, type Json, mapMembers } from "./jsonTree.ts"

/**
 * Schemas of integer query parameters. The generator describes them as strings, because they are digits on the wire.
 */
const integerParameters: Readonly<Record<string, Json>> = {
  limit: { type: "integer", minimum: 1, maximum: 200, default: 50 },
  from: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  to: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
}

const headerDescriptions: Readonly<Record<string, Json>> = {
  "x-request-id": {
    description: "ID of this request, for support. Errors repeat it.",
    schema: { type: "string", pattern: "^req_[0-9a-z]{26}$" }
  },
  "retry-after": { description: "Whole seconds to wait before the next attempt.", schema: { type: "integer", minimum: 1 } },
  location: {
    description: "URL of the deployment.",
    schema: { type: "string", format: "uri-reference", pattern: "^/v1/deployments/dep_[0-9a-z]{26}$" }
  },
  "idempotent-replayed": { description: "An earlier create with the same key started the operation." },
  allow: { description: "The methods that the path accepts.", schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" } },
  etag: { description: "Identifies this content. Send it as `If-None-Match` to revalidate.", schema: { type: "string", pattern: '^(W/)?"[^"]+"$' } },
  "cache-control": { description: "How long the response may be cached." },
  [signatureHeader]: {
    description:
      "The signature of the receipt: a JWS (Ed25519) in compact form with detached payload. The payload is the exact bytes of the body. If something on the way reformatted the JSON, parse it and use its canonical form (RFC 8785), which gives the same bytes. Absent if the installation does not sign.",
    schema: { type: "string", pattern: "^[A-Za-z0-9_-]+\\.\\.[A-Za-z0-9_-]{86}$" }
  },
  vary: { description: "Request headers that the response depends on." },
  "www-authenticate": { description: "The required authentication scheme.", schema: { type: "string", pattern: "^Bearer " } }
}

const statusDescriptions: Readonly<Record<string, string>> = {
  "200": "Success.",
  "201": "Created.",
  "204": "Success. The response has no body.",
  "304": "The content still has the entity tag in `If-None-Match`.",
  "400": "A parameter, a header or the body is invalid. `param` names it.",
  "401": "The key is missing, unknown, revoked or expired, or its organization is inactive.",
  "402": "The organization needs a first purchase, its billing is suspended, or its balance or spend limit is used up.",
  "403": "The key lacks the scope in `param`.",
  "404": "Not found in this organization.",
  "406": "The installation cannot return the requested media type.",
  "405": "The path does not accept the method. `Allow` lists the accepted methods.",
  "408": "The request took too long to arrive. The connection is closed.",
  "409": "The request conflicts with the current state of the resource.",
  "413": "The body is too large.",
  "415": "The body is not JSON in UTF-8.",
  "422": "A preview of this create would be refused. `code` and `message` are the same as in the preview's `reason`.",
  "429": "Too many requests. Try again after `Retry-After` seconds.",
  "431": "The request line and headers are too large. The connection is closed.",
  "500": "The server failed.",
  "503": "A dependency of the server is unavailable. Try again after `Retry-After` seconds."
}

const schemaName = (name: string) => name.replace(/Encoded$/, "")

/**
 * Gives schemas the names of the contract and removes what the generator adds. Accepts a schema or any JSON that
 * contains schemas.
 */
const describeSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(describeSchema)
  if (!isRecord(value)) return value
  const members = mapMembers(value, describeSchema)
  const { $ref: reference, anyOf, pattern } = members
  if (typeof reference === "string") return { ...members, $ref: schemaName(reference) }
  if (typeof pattern === "string" && pattern.endsWith("\\.\\d{3}Z$")) return { ...members, format: "date-time" }
  // A choice with one member is replaced by the member.
  if (Array.isArray(anyOf) && anyOf.length === 1 && isRecord(anyOf[0])) {
    const { anyOf: _, ...rest } = members
    return { ...rest, ...anyOf[0] }
  }
  return members
}

const codesOf = (schemas: Json, schema: unknown): ReadonlyArray<string> => {
  if (!isRecord(schema)) return []
  if (Array.isArray(schema.anyOf)) return schema.anyOf.flatMap((member) => codesOf(schemas, member))
  if (typeof schema.$ref === "string") return codesOf(schemas, schemas[schema.$ref.replace(/^.*\//, "")])
  const codes = ["properties", "error", "properties", "code", "enum"].reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), schema)
  return Array.isArray(codes) ? codes.map(String) : []
}

const valuesOf = (examples: Json): Json => mapMembers(examples, (value) => ({ value }))

const withExamples = (content: unknown, examples: (schema: unknown, type: string) => Json | undefined): unknown =>
  !isRecord(content)
    ? content
    : mapMembers(content, (media, type) => {
        const ofMedia = isRecord(media) ? examples(media.schema, type) : undefined
        return isRecord(media) && ofMedia !== undefined ? { ...media, examples: valuesOf(ofMedia) } : media
      })

const linksOf = (operationId: string): Json => {
  const from = links[operationId]
  if (from === undefined) return {}
  const described = mapMembers(from, (parameters, to) => ({
    operationId: to,
    description: `${operationTexts[to]?.summary ?? to}.`,
    parameters: mapMembers(isRecord(parameters) ? parameters : {}, (pointer) => `$response.body#${String(pointer)}`)
  }))
  return { links: Object.fromEntries(Object.entries(described).map(([to, link]) => [to.replace(".", "_"), link])) }
}

const describeResponse = (schemas: Json, operationId: string) => (response: unknown, status: string) => {
  if (!isRecord(response)) return response
  const succeeded = Number(status) < 400
  const examples = (schema: unknown, type: string): Json | undefined => {
    if (succeeded && type === signedMediaType) return signedExamples
    if (succeeded) return answerExamples[operationId]
    return Object.fromEntries(
      codesOf(schemas, schema).flatMap((code) => [exampleError(code)].flatMap((example) => (example === undefined ? [] : [[code, example]])))
    )
  }
  const ownHeaders = isRecord(response.headers) ? response.headers : {}
  const headers = mapMembers({ "x-request-id": { required: true }, ...ownHeaders }, (header, name) => ({
    ...(isRecord(header) ? header : {}),
    ...headerDescriptions[name]
  }))
  const content = response.content === undefined ? {} : { content: withExamples(response.content, examples) }
  return {
    ...response,
    description: statusDescriptions[status] ?? response.description,
    headers,
    ...content,
    ...(Number(status) < 300 ? linksOf(operationId) : {})
  }
}

const describeParameter = (path: string) => (parameter: unknown) => {
  if (!isRecord(parameter) || typeof parameter.name !== "string") return parameter
  const { in: place, name } = parameter
  const isOwnModel = path.startsWith("/v1/models/")
  const text = name === "id" ? (isOwnModel ? modelIdOrName : pathIds[path.replace(/\/\{id\}.*$/, "").replace(/^.*\//, "")]) : parameterTexts[name]
  const schema =
    place === "path"
      ? { type: "string", minLength: 1, maxLength: isOwnModel ? 128 : 64 }
      : place === "query" && name in integerParameters
        ? integerParameters[name]
        : parameter.schema
  return { ...parameter, schema, ...text }
}

/** The contract prescribes the operation ids of the org family, which have no prefix. */
const operationName = (operationId: unknown) => String(operationId).replace(/^org\./, "")

const describeOperation = (schemas: Json, path: string, operation: Json): Json => {
  const operationId = operationName(operation.operationId)
  const requestBody = isRecord(operation.requestBody)
    ? {
        requestBody: {
          ...operation.requestBody,
          // An operation that accepts an empty object also accepts a missing body.
          required: !JSON.stringify(operation.requestBody).includes('/schemas/Empty"'),
          content: withExamples(operation.requestBody.content, () => requestExamples[operationId])
        }
      }
    : {}
  const responses = isRecord(operation.responses) ? operation.responses : {}
  const own: ReadonlyArray<unknown> = Array.isArray(operation.parameters) ? operation.parameters : []
  const conditional = "304" in responses && !own.some((parameter) => isRecord(parameter) && parameter.name === ifNoneMatch.name)
  const parameters = conditional ? [...own, ifNoneMatch] : own
  return {
    ...operation,
    operationId,
    ...operationTexts[operationId],
    parameters: parameters.map(describeParameter(path)),
    ...requestBody,
    responses: mapMembers({ ...edgeResponses(path, responses), ...responses }, describeResponse(schemas, operationId))
  }
}

/**
 * Completes the generated document: precise schemas, descriptions, examples, links, and the responses that the server
 * sends before an endpoint is reached.
 */
export const describeApi = (generated: Record<string, unknown>): Record<string, unknown> => {
  const document = describeSchema(generated)
  if (!isRecord(document)) return generated
  const components = isRecord(document.components) ? document.components : {}
  const renamed = Object.entries(isRecord(components.schemas) ? components.schemas : {}).map(([name, schema]): readonly [string, unknown] => [
    schemaName(name),
    schema
  ])
  const { paths: addedPaths, schemas: addedSchemas } = ownPaths
  const schemas = { ...Object.fromEntries(renamed), ...addedSchemas }
  const paths = mapMembers({ ...(isRecord(document.paths) ? document.paths : {}), ...addedPaths }, (item, path) =>
    mapMembers(isRecord(item) ? item : {}, (operation) => (isRecord(operation) ? describeOperation(schemas, path, operation) : operation))
  )
  return {
    ...document,
    info: { ...(isRecord(document.info) ? document.info : {}), description: introduction, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/", description: "This installation." }],
    tags: Object.entries(tagTexts).map(([name, description]) => ({ name, description })),
    paths,
    components: { ...components, schemas }
  }
}
