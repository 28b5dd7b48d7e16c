import { signatureHeader, signedMediaType } from "@seatrial/domain"
import { introduction, links, modelIdOrName, operationWords, parameterWords, pathIds, tagWords } from "./documentation.ts"
import { edgeResponses, ifNoneMatch, ownPaths } from "./edge.ts"
import { exampleError } from "./exampleErrors.ts"
import { answerExamples, requestExamples, signedExamples } from "./examples.ts"
import { isRecord, type Json, mapMembers } from "./jsonTree.ts"

/** What the document says of query parameters that are integers; on the wire they are digits, so their schemas begin as strings. */
const integerParameters: Readonly<Record<string, Json>> = {
  limit: { type: "integer", minimum: 1, maximum: 200, default: 50 },
  from: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  to: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
}

const headerWords: Readonly<Record<string, Json>> = {
  "x-request-id": {
    description: "Names this request to support; an error repeats it.",
    schema: { type: "string", pattern: "^req_[0-9a-z]{26}$" }
  },
  "retry-after": { description: "Whole seconds after which to try again.", schema: { type: "integer", minimum: 1 } },
  location: {
    description: "Where to follow the deployment.",
    schema: { type: "string", format: "uri-reference", pattern: "^/v1/deployments/dep_[0-9a-z]{26}$" }
  },
  "idempotent-replayed": { description: "The operation was made by an earlier create with the same key." },
  allow: { description: "The methods that the path takes.", schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" } },
  etag: { description: "Names this content; send it back as `If-None-Match`.", schema: { type: "string", pattern: '^(W/)?"[^"]+"$' } },
  "cache-control": { description: "How long the answer may be kept." },
  [signatureHeader]: {
    description:
      "The receipt's signature: a JWS in compact form (Ed25519) without its payload, which is the body, or the canonical JSON (RFC 8785) of what it was parsed to. Absent where the installation does not sign.",
    schema: { type: "string", pattern: "^[A-Za-z0-9_-]+\\.\\.[A-Za-z0-9_-]{86}$" }
  },
  vary: { description: "What of the request the answer depends on." },
  "www-authenticate": { description: "The scheme that the operation wants.", schema: { type: "string", pattern: "^Bearer " } }
}

const statusWords: Readonly<Record<string, string>> = {
  "200": "Success.",
  "201": "Created.",
  "204": "Done. There is no body.",
  "304": "Not modified since the answer that `If-None-Match` names.",
  "400": "A parameter, header or the body is not as it has to be; `param` names what.",
  "401": "No key, or one that is unknown, revoked or expired, or an inactive organization.",
  "402": "The organization has to make its first purchase, or its billing is suspended.",
  "403": "The key lacks the scope in `param`.",
  "404": "Not found in this organization.",
  "406": "Asked for as something that the installation does not give.",
  "405": "The path does not take the method; `Allow` names those that it takes.",
  "408": "The request took too long to arrive; the connection is closed.",
  "409": "In conflict with what is there.",
  "413": "The body is too large.",
  "415": "The body is not JSON in UTF-8.",
  "422": "A preview would refuse this outright; `code` and `message` are those of its `reason`.",
  "429": "Too many requests; try again after `Retry-After` seconds.",
  "431": "The request line and headers are too large; the connection is closed.",
  "500": "A fault of the server.",
  "503": "Something that the server needs is away; try again after `Retry-After` seconds."
}

const schemaName = (name: string) => name.replace(/Encoded$/, "")

/** A schema, or what holds schemas, with the names of the contract and without what the generator adds. */
const describeSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(describeSchema)
  if (!isRecord(value)) return value
  const members = mapMembers(value, describeSchema)
  const { $ref: reference, anyOf, pattern } = members
  if (typeof reference === "string") return { ...members, $ref: schemaName(reference) }
  if (typeof pattern === "string" && pattern.endsWith("\\.\\d{3}Z$")) return { ...members, format: "date-time" }
  // A choice of one is that one.
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
  const found = ["properties", "error", "properties", "code", "enum"].reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), schema)
  return Array.isArray(found) ? found.map(String) : []
}

const valuesOf = (examples: Json): Json => mapMembers(examples, (value) => ({ value }))

const withExamples = (content: unknown, examples: (schema: unknown, type: string) => Json | undefined): unknown =>
  !isRecord(content)
    ? content
    : mapMembers(content, (media, type) => {
        const found = isRecord(media) ? examples(media.schema, type) : undefined
        return isRecord(media) && found !== undefined ? { ...media, examples: valuesOf(found) } : media
      })

const linksOf = (operationId: string): Json => {
  const from = links[operationId]
  if (from === undefined) return {}
  const described = mapMembers(from, (parameters, to) => ({
    operationId: to,
    description: `${operationWords[to]?.summary ?? to}.`,
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
  const given = isRecord(response.headers) ? response.headers : {}
  const headers = mapMembers({ "x-request-id": { required: true }, ...given }, (header, name) => ({
    ...(isRecord(header) ? header : {}),
    ...headerWords[name]
  }))
  const content = response.content === undefined ? {} : { content: withExamples(response.content, examples) }
  return { ...response, description: statusWords[status] ?? response.description, headers, ...content, ...(Number(status) < 300 ? linksOf(operationId) : {}) }
}

const describeParameter = (path: string) => (parameter: unknown) => {
  if (!isRecord(parameter) || typeof parameter.name !== "string") return parameter
  const { in: place, name } = parameter
  const isOwnModel = path.startsWith("/v1/models/")
  const words = name === "id" ? (isOwnModel ? modelIdOrName : pathIds[path.replace(/\/\{id\}.*$/, "").replace(/^.*\//, "")]) : parameterWords[name]
  const schema =
    place === "path"
      ? { type: "string", minLength: 1, maxLength: isOwnModel ? 128 : 64 }
      : place === "query" && name in integerParameters
        ? integerParameters[name]
        : parameter.schema
  return { ...parameter, schema, ...words }
}

/** The contract names the operations of the org family. */
const operationName = (operationId: unknown) => String(operationId).replace(/^org\./, "")

const describeOperation = (schemas: Json, path: string, operation: Json): Json => {
  const operationId = operationName(operation.operationId)
  const requestBody = isRecord(operation.requestBody)
    ? {
        requestBody: {
          ...operation.requestBody,
          // What takes an object without members takes no body at all as well.
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
    ...operationWords[operationId],
    parameters: parameters.map(describeParameter(path)),
    ...requestBody,
    responses: mapMembers({ ...edgeResponses(path, responses), ...responses }, describeResponse(schemas, operationId))
  }
}

/** Puts right what the generated document says less precisely than the server behaves, and adds what no endpoint has: words, examples, links and the edge. */
export const describeApi = (generated: Record<string, unknown>): Record<string, unknown> => {
  const document = describeSchema(generated)
  if (!isRecord(document)) return generated
  const components = isRecord(document.components) ? document.components : {}
  const named = Object.entries(isRecord(components.schemas) ? components.schemas : {}).map(([name, schema]): readonly [string, unknown] => [
    schemaName(name),
    schema
  ])
  const { paths: addedPaths, schemas: addedSchemas } = ownPaths
  const schemas = { ...Object.fromEntries(named), ...addedSchemas }
  const paths = mapMembers({ ...(isRecord(document.paths) ? document.paths : {}), ...addedPaths }, (item, path) =>
    mapMembers(isRecord(item) ? item : {}, (operation) => (isRecord(operation) ? describeOperation(schemas, path, operation) : operation))
  )
  return {
    ...document,
    info: { ...(isRecord(document.info) ? document.info : {}), description: introduction, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/", description: "This installation." }],
    tags: Object.entries(tagWords).map(([name, description]) => ({ name, description })),
    paths,
    components: { ...components, schemas }
  }
}
