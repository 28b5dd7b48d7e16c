/** What the document says of query parameters that are integers; on the wire they are digits, so their schemas begin as strings. */
const integerParameters: Readonly<Record<string, object>> = {
  limit: { type: "integer", minimum: 1, maximum: 200, default: 50 },
  from: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  to: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
}

const headerSchemas: Readonly<Record<string, object>> = {
  "retry-after": { type: "integer", minimum: 1, description: "Whole seconds after which to try again." },
  location: { type: "string", format: "uri-reference", description: "Where to follow the deployment." }
}

const requestIdHeader = {
  "x-request-id": {
    schema: { type: "string", pattern: "^req_[0-9a-z]{26}$" },
    required: true,
    description: "Names this request to support; an error repeats it."
  }
}

const descriptions: Readonly<Record<string, string>> = {
  "200": "Success.",
  "201": "Created.",
  "400": "A parameter, header or the body is not as it has to be; `param` names what.",
  "401": "No key, or one that is unknown, revoked or expired, or an inactive organization.",
  "402": "The organization has to make its first purchase.",
  "403": "The key lacks the scope in `param`.",
  "404": "Not found in this organization.",
  "409": "In conflict with what is there.",
  "413": "The body is too large.",
  "415": "The body is not JSON.",
  "429": "Too many requests; try again after `Retry-After` seconds.",
  "500": "A fault of the server.",
  "503": "Something that the server needs is away; try again after `Retry-After` seconds."
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)

const schemaName = (name: string) => name.replace(/Encoded$/, "")

const describeResponse = (status: string, response: Readonly<Record<string, unknown>>) => ({
  ...response,
  description: descriptions[status] ?? response.description,
  headers: { ...requestIdHeader, ...(isRecord(response.headers) ? response.headers : {}) }
})

const describeRecord = (record: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { in: place, name, pattern } = record
  const reference = record.$ref
  const operationId = record.operationId
  // The contract names the operations of the org family.
  if (typeof operationId === "string") return { ...record, operationId: operationId.replace(/^org\./, "") }
  if (typeof reference === "string") return { ...record, $ref: schemaName(reference) }
  if (typeof name === "string" && place === "query" && name in integerParameters) return { ...record, schema: integerParameters[name] }
  if (typeof pattern === "string" && pattern.endsWith("\\.\\d{3}Z$")) return { ...record, format: "date-time" }
  return record
}

const walk = (value: unknown, key: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => walk(item, key))
  if (!isRecord(value)) return value
  const entries = Object.entries(describeRecord(value)).map(([name, member]): readonly [string, unknown] => {
    const described = walk(member, name)
    if (name === "requestBody" && isRecord(described) && JSON.stringify(described).includes('/schemas/Empty"')) return [name, { ...described, required: false }]
    if (key === "schemas") return [schemaName(name), described]
    if (key === "responses" && isRecord(described)) return [name, describeResponse(name, described)]
    if (key === "headers" && isRecord(described) && name in headerSchemas) return [name, { ...described, schema: headerSchemas[name] }]
    return [name, described]
  })
  return Object.fromEntries(entries)
}

/** Puts right what the generated document says less precisely than the server behaves. */
export const describeApi = (document: Record<string, unknown>): Record<string, unknown> => {
  const described = walk(document, "")
  return isRecord(described) ? { ...described } : document
}
